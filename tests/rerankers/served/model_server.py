"""The embedded language model behind the OpenAI chat protocol, run as a process of its own."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pytest_invari.rerankers.language_model.conversion import model_folder, tokenizer_folder
from pytest_invari.rerankers.language_model.source import find_model


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/tokenize":
            answer = {"tokens": self.server.tokenizer.encode(body["prompt"], add_special_tokens=False)}
        else:
            with self.server.lock:
                answer = self.server.completion(body)
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        source = find_model("")
        self.tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder(source))
        self.model = AutoModelForCausalLM.from_pretrained(model_folder(source), dtype=torch.float32).eval()

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = self.tokenizer.apply_chat_template(
            body["messages"],
            tokenize=False,
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=body.get("continue_final_message", False),
        )
        ids = self.tokenizer.encode(prompt, add_special_tokens=False)
        with torch.inference_mode():
            last = self.model(input_ids=torch.tensor([ids])).logits[0, -1].float().log_softmax(-1)
        best = last.topk(body["top_logprobs"])
        rows = [
            {"token": self.tokenizer.decode([token]), "logprob": value}
            for token, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        return {
            "model": body["model"],
            "choices": [
                {
                    "message": {"role": "assistant", "content": rows[0]["token"]},
                    "logprobs": {"content": [{**rows[0], "top_logprobs": rows}]},
                    "finish_reason": "length",
                }
            ],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": 1},
        }


def main() -> None:
    torch.set_num_threads(1)
    server = Server()
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
