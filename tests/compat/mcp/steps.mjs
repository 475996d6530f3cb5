// SPDX-License-Identifier: Apache-2.0
// What a client does with every tool, whichever client and era it is. Results are checked against outputSchema by the clients themselves.
import assert from "node:assert/strict";
import { test } from "node:test";

export const { URL: address, KEY: key, BURROW: burrow, DATA: data } = process.env;
export const headers = { Authorization: `Bearer ${key}` };
export const stdio = { command: burrow, args: ["mcp", "--data", data], stderr: "inherit" };

async function use(client, name, args = {}, options) {
  const result = await client.call({ name, arguments: args }, options);
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  return result.structuredContent;
}

// `connect` gives { call, client, close }.
export function everything(title, connect) {
  test(title, async (t) => {
    const client = await connect();
    let box;
    t.after(() => client.close());

    await t.test("tools are listed, and its schemas are taken", async () => {
      const { tools } = await client.client.listTools();
      assert.equal(tools.length, 19);
      assert.ok(tools.every((tool) => tool.outputSchema && tool.annotations));
    });
    await t.test("a one-shot", async () => {
      const told = await use(client, "sandbox_run", { script: "echo out; exit 3" });
      assert.deepEqual([told.exitCode, told.stdout.text], [3, "out\n"]);
    });
    await t.test("create, get, list", async () => {
      box = (await use(client, "sandbox_create", { labels: { compat: "mcp" } })).id;
      assert.equal((await use(client, "sandbox_get", { sandbox: box })).id, box);
      assert.ok((await use(client, "sandbox_list")).items.some((one) => one.id === box));
    });
    await t.test("exec, output, stop", async () => {
      const told = await use(client, "sandbox_exec", { sandbox: box, script: "echo a; sleep 600", waitMs: 500 });
      assert.equal(told.running, true);
      assert.equal((await use(client, "sandbox_output", { execution: told.execution })).text, "a\n");
      await use(client, "sandbox_stop", { execution: told.execution });
    });
    await t.test("files", async () => {
      await use(client, "sandbox_write_files", { sandbox: box, files: [{ path: "a.txt", content: "one\n" }] });
      await use(client, "sandbox_edit_file", { sandbox: box, path: "a.txt", old: "one", new: "two" });
      assert.equal((await use(client, "sandbox_read_file", { sandbox: box, path: "a.txt" })).text, "two\n");
      assert.ok((await use(client, "sandbox_list_files", { sandbox: box })).items.some((file) => file.path === "a.txt"));
    });
    await t.test("code, with what it draws", async () => {
      const code = "class P:\n  def _repr_mimebundle_(self, **k):\n    return {'image/png': 'iVBORw0KGgo='}\nx = 2\nP()";
      const result = await client.call({ name: "sandbox_run_code", arguments: { sandbox: box, code } });
      assert.deepEqual(result.content[1], { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" });
      const again = await use(client, "sandbox_run_code", { sandbox: box, code: "x + 1" });
      assert.equal(again.results[0].data["text/plain"], "3");
    });
    await t.test("ports, snapshots, forks, checkpoints, networks", async () => {
      assert.equal((await use(client, "sandbox_expose_port", { sandbox: box, port: 3000 })).port, 3000);
      await use(client, "sandbox_checkpoint", { sandbox: box, name: "c" });
      await use(client, "sandbox_restore", { sandbox: box, checkpoint: "c" });
      const fork = await use(client, "sandbox_fork", { sandbox: box });
      await use(client, "sandbox_destroy", { sandbox: fork.id });
      assert.ok((await use(client, "sandbox_snapshot", { sandbox: box })).id);
      assert.equal((await use(client, "sandbox_network", { sandbox: box })).network.enabled, false);
      const why = await use(client, "sandbox_network", { sandbox: box, action: "explain", host: "example.com", port: 443 });
      assert.equal(why.explanation.allowed, false);
    });
    await t.test("resources", async () => {
      const { resourceTemplates } = await client.client.listResourceTemplates();
      assert.equal(resourceTemplates.length, 4);
      const { contents } = await client.client.readResource({ uri: `burrow://sandboxes/${box}/files/workspace/a.txt` });
      assert.equal(contents[0].text, "two\n");
      assert.ok((await client.client.listResources()).resources.length > 0);
      await assert.rejects(client.client.readResource({ uri: "burrow://sandboxes/no-such" }));
    });
    await t.test("refusals are results, and faults are errors", async () => {
      const result = await client.call({ name: "sandbox_exec", arguments: { sandbox: "no-such", script: "true" } });
      assert.ok(result.isError && result.content[0].text.includes("sandbox_create"));
      await assert.rejects(client.call({ name: "no_such_tool", arguments: {} }));
    });
    await t.test("progress", async () => {
      const seen = [];
      const told = await use(client, "sandbox_run", { script: "sleep 2.5" }, { onprogress: (note) => seen.push(note.progress) });
      assert.ok(told.exitCode === 0 && seen.length > 0);
    });
    await t.test("a cancelled one-shot ends", async () => {
      const cancel = new AbortController();
      const living = async () => (await use(client, "sandbox_list", { selector: "compat=cancel" })).items.filter((one) => !["ended", "failed"].includes(one.state));
      const until = async (fn) => {
        for (const end = Date.now() + 60000; !(await fn()); await new Promise((next) => setTimeout(next, 50))) assert.ok(Date.now() < end);
      };
      const call = client.call({ name: "sandbox_run", arguments: { script: "sleep 600", labels: { compat: "cancel" } } }, { signal: cancel.signal });
      await until(async () => (await living()).length === 1);
      cancel.abort("enough");
      await assert.rejects(call);
      await until(async () => (await living()).length === 0);
    });
    await t.test("destroy", async () => {
      assert.deepEqual(await use(client, "sandbox_destroy", { sandbox: box }), { done: true });
    });
  });
}
