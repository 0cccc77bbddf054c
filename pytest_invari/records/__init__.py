"""Rankings on disk: one folder for each fingerprint of what they were made with."""
