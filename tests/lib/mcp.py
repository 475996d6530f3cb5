# SPDX-License-Identifier: Apache-2.0
"""A client of MCP for tests: both eras, by hand, so that what is wrong can be sent too."""
import json

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
META = "io.modelcontextprotocol/"
ACCEPT = "application/json, text/event-stream"


def meta(version=MODERN, **more):
    return {META + "protocolVersion": version, META + "clientCapabilities": {}, META + "clientInfo": {"name": "test", "version": "1"}, **more}


class Mcp:
    """One era of the protocol over one client of HTTP."""

    def __init__(self, api, version=MODERN):
        self.api, self.version, self.next_id, self.session = api, version, 0, None
        if version != MODERN:
            answer = self.send(self.message("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"}))
            assert answer.status == 200, str(answer)
            self.hello, self.session = answer.json["result"], answer.headers["mcp-session-id"]
            assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    @property
    def is_modern(self):
        return self.version == MODERN

    def message(self, method, **params):
        self.next_id += 1
        if self.is_modern:
            params["_meta"] = {**meta(), **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}

    def headers(self, message):
        headers = {"Content-Type": "application/json", "Accept": ACCEPT}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version}
        if self.is_modern and isinstance(message, dict):
            params = message.get("params", {})
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message.get("method", "")}
            if name := params.get("name", params.get("uri")):
                headers["Mcp-Name"] = name
        return headers

    def send(self, message, headers=None, **kwargs):
        headers = self.headers(message) if headers is None else headers
        return self.api.call("POST", "/mcp", body=json.dumps(message).encode(), headers=headers, **kwargs)

    def ask(self, method, **params):
        """The result of a request; fails on an error of the protocol."""
        message = self.message(method, **params)
        answer = self.send(message)
        assert answer.status == 200, str(answer)
        reply = events(answer)[-1] if answer.headers["content-type"] == "text/event-stream" else answer.json
        assert reply["id"] == message["id"] and "error" not in reply, reply
        assert ("resultType" in reply["result"]) == self.is_modern
        return reply["result"]

    def tool(self, name, /, **arguments):
        """What a tool returns, which is no error."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert not result["isError"], result
        return result["structuredContent"]

    def refused(self, name, /, **arguments):
        """The sentence of a tool that says what is wrong."""
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert result["isError"], result
        [content] = result["content"]
        return content["text"]


def events(answer):
    """The messages of a stream."""
    blocks = answer.body.decode().split("\n\n")
    return [json.loads(line[6:]) for block in blocks for line in block.split("\n") if line.startswith("data: ")]
