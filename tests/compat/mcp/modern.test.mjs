// SPDX-License-Identifier: Apache-2.0
// The second line of the official SDK: the stateless revision by name, by looking, and the handshake.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { address, everything, headers, stdio } from "./steps.mjs";

async function connect(transport, mode, version) {
  const client = new Client({ name: "compat", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  assert.equal(client.getNegotiatedProtocolVersion(), version);
  return { client, call: (params, options) => client.callTool(params, options), close: () => client.close() };
}

const http = () => new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } });
const modern = "2026-07-28";

everything("sdk 2, stateless, over HTTP", () => connect(http(), { pin: modern }, modern));
everything("sdk 2, stateless, over stdio", () => connect(new StdioClientTransport(stdio), { pin: modern }, modern));

test("sdk 2 finds the newest revision by itself", async () => {
  for (const transport of [http(), new StdioClientTransport(stdio)]) {
    const { client, close } = await connect(transport, "auto", modern);
    assert.equal(client.getServerVersion().name, "burrow");
    await close();
  }
});

test("sdk 2 shakes hands as before", async () => {
  for (const transport of [http(), new StdioClientTransport(stdio)]) {
    const { call, close } = await connect(transport, "legacy", "2025-11-25");
    assert.equal((await call({ name: "sandbox_run", arguments: { command: ["true"] } })).structuredContent.exitCode, 0);
    await close();
  }
});
