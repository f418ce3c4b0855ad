"""An identity provider on loopback: discovery, tokens signed with RS256, user information."""

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT = "sweetspot"
CLIENT_SECRET = "secret of the client"
SLOW_S = 4


class Provider:
    """Tests change `claims`, `userinfo` and `key` to send wrong ones, and `answers` to replace the answer of a path."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.key = self.published = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {"sub": "4711", "preferred_username": "mia", "groups": ["lab"]}
        self.answers: dict[str, Any] = {}
        self.redirected: dict[str, str] = {}  # path to the address that it redirects to
        self.slow = ""  # the path whose answer arrives byte by byte, for SLOW_S
        self.requests: list[str] = []  # their paths
        self.asked: dict[str, str] = {}

    def authorize(self, address: str) -> dict[str, str]:
        """What the browser brings back to the callback."""
        self.asked = {name: values[-1] for name, values in parse_qs(urlsplit(address).query).items()}
        return {"code": "a code", "state": self.asked["state"]}

    def answer(self, path: str, form: dict[str, str]) -> Any:
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/openid-configuration":
            names = {"authorization_endpoint": "auth", "token_endpoint": "token", "userinfo_endpoint": "userinfo"}
            addresses = {name: f"{self.issuer}/{path}" for name, path in (names | {"jwks_uri": "keys"}).items()}
            return {"issuer": self.issuer, **addresses}
        if path == "/keys":
            public = json.loads(RSAAlgorithm.to_jwk(self.published.public_key()))
            return {"keys": [public | {"kid": "1", "alg": "RS256", "use": "sig"}]}
        if path == "/userinfo":
            return self.userinfo
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        assert challenge.decode() == self.asked["code_challenge"]
        assert (form["client_secret"], form["code"]) == (CLIENT_SECRET, "a code")
        return {"access_token": "t", "id_token": self._id_token(), "token_type": "Bearer"}

    def _id_token(self) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "4711", "iat": now, "exp": now + 300}
        claims |= {"nonce": self.asked["nonce"]} | self.claims
        return jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": "1"})


@contextmanager
def running_provider() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send({name: values[-1] for name, values in parse_qs(text).items()})

        def _send(self, form: dict[str, str]) -> None:
            provider.requests.append(self.path)
            body = json.dumps(provider.answer(self.path, form)).encode()
            slow = SLOW_S * 10 if self.path == provider.slow else 0
            self.send_response(307 if self.path in provider.redirected else 200)
            if self.path in provider.redirected:
                self.send_header("Location", provider.redirected[self.path])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(slow + len(body)))
            self.end_headers()
            with suppress(OSError):  # the server has closed the connection
                for _ in range(slow):
                    self.wfile.write(b" ")
                    time.sleep(0.1)  # the provider is slow
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield provider
    server.shutdown()
    server.server_close()
