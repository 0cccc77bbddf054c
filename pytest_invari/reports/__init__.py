"""What a run tells: results gathered from its items, the terminal's section, and the JSON report."""
