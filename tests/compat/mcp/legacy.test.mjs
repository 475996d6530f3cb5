// SPDX-License-Identifier: Apache-2.0
// The first line of the official SDK, which begins with "initialize".
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { address, everything, headers, stdio } from "./steps.mjs";

async function connect(transport) {
  const client = new Client({ name: "compat", version: "1" });
  await client.connect(transport);
  return { client, call: (params, options) => client.callTool(params, undefined, options), close: () => client.close() };
}

const http = (options = { headers }) => new StreamableHTTPClientTransport(new URL(address), { requestInit: options });

everything("sdk 1 over HTTP", () => connect(http()));
everything("sdk 1 over stdio", () => connect(new StdioClientTransport(stdio)));

test("sdk 1 without a key is refused, and sent nowhere else", async () => {
  await assert.rejects(connect(http({ headers: {} })), /401|key/i);
});

test("sdk 1 can end its session", async () => {
  const transport = http();
  const { close } = await connect(transport);
  assert.ok(transport.sessionId);
  await transport.terminateSession(); // 405: there is nothing to end
  await close();
});
