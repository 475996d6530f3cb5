// SPDX-License-Identifier: Apache-2.0
// The vendor's documented examples, with real ids, and what only JavaScript can say: hashes over its own JSON.stringify.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { createAionisClient } from "./client.mjs";

const baseUrl = process.env.AIONIS_URL + "//";
const aionis = createAionisClient({ baseUrl, headers: { "x-api-key": process.env.AIONIS_KEY } });
const pair = { tenant_id: "default", scope: "local-sandbox" };
const sha256 = (text) => createHash("sha256").update(text, "utf8").digest("hex");

test("minimal session and execute example, logs and artifacts", async () => {
  const session = await aionis.memory.sandbox.sessions.create({ ...pair, actor: "docs-example", profile: "default" });
  assert.equal(session.tenant_id, "default");

  const run = await aionis.memory.sandbox.execute({
    ...pair,
    actor: "docs-example",
    session_id: session.session.session_id,
    mode: "sync",
    action: { kind: "command", argv: ["echo", "hello-from-aionis-sandbox"] },
  });
  assert.equal(run.accepted, false);
  assert.equal(run.run.status, "succeeded");
  assert.equal(run.run.output.stdout, "hello-from-aionis-sandbox\n");

  const logs = await aionis.memory.sandbox.runs.logs({ ...pair, run_id: run.run.run_id });
  assert.equal(logs.logs.stdout, "hello-from-aionis-sandbox\n");

  const { artifact } = await aionis.memory.sandbox.runs.artifact({
    ...pair,
    run_id: run.run.run_id,
    include_output: true,
    include_result: true,
  });
  assert.equal(artifact.output.stdout, "hello-from-aionis-sandbox\n");
  assert.equal(artifact.result.executor, (await aionis.system.health()).sandbox.mode);
});

test("an async run is asked for until it has ended, and cancelled", async () => {
  const { session } = await aionis.memory.sandbox.sessions.create(pair);
  const started = await aionis.memory.sandbox.execute({
    ...pair,
    session_id: session.session_id,
    action: { kind: "command", argv: ["sleep", "60"] },
  });
  assert.equal(started.accepted, true);
  const run_id = started.run.run_id;
  const asked = await aionis.memory.sandbox.runs.cancel({ ...pair, run_id, reason: "documented" });
  assert.equal(asked.cancel_requested, true);
  for (;;) {
    const { run } = await aionis.memory.sandbox.runs.get({ ...pair, run_id });
    if (run.status === "canceled") break;
    assert.ok(["queued", "running"].includes(run.status));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test("failures are thrown with their status and payload", async () => {
  await assert.rejects(aionis.memory.sandbox.runs.get({ ...pair, run_id: "run-id-from-execute" }), (error) => {
    assert.equal(error.status, 400);
    assert.deepEqual(error.payload.issues.map((issue) => issue.path), ["run_id"]);
    return true;
  });
});

const awkward = [
  { a: 1.0, b: 2.5, c: -0, d: 1e21, e: 123456789012345680000, f: 5e-324, g: 0.1 + 0.2, h: 1e-7, i: Number.MAX_VALUE },
  { z: 1, 10: "ten", 9: "nine", "01": 1, "-1": 2, 4294967294: 3, 4294967295: 4 },
  { "\ud800": "\udfff", pair: "\u{1f30d}", line: "\u2028\u2029", controls: "\u0000\u0001\b\t\n\f\r\u001f\u007f", slash: "/</" },
  { deep: [[[[{ a: [null, true, false, "", {}, []] }]]]] },
];
for (const [index, metadata] of awkward.entries()) {
  test(`a bundle's hashes are over JSON.stringify of its objects, metadata ${index}`, async () => {
    const scope = "a/b c:é!'()*~";
    const { session } = await aionis.memory.sandbox.sessions.create({ scope, metadata });
    assert.equal(JSON.stringify(session.metadata), JSON.stringify(metadata));
    const { run } = await aionis.memory.sandbox.execute({
      scope,
      session_id: session.session_id,
      mode: "sync",
      metadata,
      action: { kind: "command", argv: ["printf", "%b", "\\0360\\0237\\0214\\0215 \\0000\\0177 ~".repeat(60), "\ud83d", "é"] },
    });
    assert.equal(run.status, "succeeded");
    const { artifact } = await aionis.memory.sandbox.runs.artifact({ scope, run_id: run.run_id, tail_bytes: 33 });
    assert.equal(JSON.stringify(artifact.metadata), JSON.stringify(metadata));
    assert.equal(artifact.bundle.object_prefix, `sandbox/default/${encodeURIComponent(scope)}/${run.run_id}`);
    for (const object of artifact.bundle.objects) {
      const text = JSON.stringify(object.inline);
      assert.equal(object.bytes, Buffer.byteLength(text), object.name);
      assert.equal(object.sha256, sha256(text), object.name);
    }
  });
}

const squeeze = (text) => text.replace(/\s+/g, " ").trim();
const clip = (text, units) => (text.length <= units ? text : text.slice(0, units - 1).trimEnd() + "...");
test("previews are what JavaScript would cut", async () => {
  const { session } = await aionis.memory.sandbox.sessions.create(pair);
  for (const text of ["x".repeat(238) + "\u{1f30d}y", " \u00a0 a\u3000\ufeffb\u200b\u2028c ", "\u{1f30d} ".repeat(130), "a".repeat(239) + " b", ""]) {
    const { run } = await aionis.memory.sandbox.execute({
      ...pair,
      session_id: session.session_id,
      mode: "sync",
      action: { kind: "command", argv: ["printf", "%s", ...(text ? [text] : [])] },
    });
    assert.equal(run.output.stdout, text);
    assert.equal(run.result_summary.stdout_preview, clip(squeeze(text), 240));
    assert.equal(run.result_summary.stdout_chars, text.length);
    const pruned = { argv: run.action.argv.slice(0, 3).map((word) => clip(squeeze(word), 120)), canceled: false, command: "printf",
                     executor: "local_process", signal: null };
    assert.equal(run.result_summary.result_preview, clip(JSON.stringify(pruned), 240));
  }
});
