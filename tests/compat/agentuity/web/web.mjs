// SPDX-License-Identifier: Apache-2.0
// Talks to the application in app.mjs, which Agentuity's own runtime serves on a port of its own, and which has its sandboxes of burrow.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';

const PATIENCE_MS = 60_000;
let app, url, said = '';

async function freePort() {
	const server = createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

before(async () => {
	const port = await freePort();
	url = `http://127.0.0.1:${port}`;
	app = spawn(process.env.BURROW_BUN, ['app.mjs'], { env: { ...process.env, PORT: `${port}` }, stdio: ['ignore', 'pipe', 'pipe'] });
	for (const from of [app.stdout, app.stderr]) from.on('data', (data) => (said += data));
	const until = Date.now() + PATIENCE_MS;
	while (!(await fetch(`${url}/api/`).catch(() => null))) {
		assert.ok(app.exitCode === null && Date.now() < until, `the application does not answer: ${said}`);
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
});

after(async () => {
	if (app.exitCode === null) {
		app.kill('SIGKILL');
		await once(app, 'exit');
	}
});

async function ask(path, body, method = 'POST') {
	const answer = await fetch(`${url}/api${path}`, { method, body: body && JSON.stringify(body), headers: { 'content-type': 'application/json' } });
	const text = await answer.text();
	assert.ok(answer.ok, `${path}: ${answer.status} ${text} ${said.slice(-2000)}`);
	return text ? JSON.parse(text) : null;
}

test('ctx.sandbox: an agent runs code once', async () => {
	assert.deepEqual(await ask('/agent/run', { code: 'print("Hello!")' }), { output: 'Hello!\n', exitCode: 0 });
	assert.equal((await ask('/agent/run', { code: 'import sys; sys.exit(3)' })).exitCode, 3);
});

test('ctx.sandbox: an agent keeps a sandbox for several steps and destroys it', async () => {
	const built = await ask('/agent/build', { main: 'open("out", "w").write("x")' });
	assert.equal(built.exitCode, 0);
	await assert.rejects(ask(`/route/sandboxes/${built.id}/execute`, { command: ['true'] }));
});

test('ctx.sandbox: an agent starts a job and follows it to its end', async () => {
	assert.equal((await ask('/agent/job', { script: 'sleep 0.2; exit 0' })).status, 'completed');
	const failed = await ask('/agent/job', { script: 'exit 4' });
	assert.deepEqual([failed.status, failed.exitCode], ['failed', 4]);
});

test('c.var.sandbox: a route runs a command once', async () => {
	const done = await ask('/route/run', { exec: ['sh', '-c', 'echo out; echo err >&2; exit 2'] });
	assert.deepEqual(done, { stdout: 'out\n', stderr: 'err\n', exitCode: 2 });
});

test('c.var.sandbox: one request makes a sandbox, others use it, and one that is paused goes on', async () => {
	const made = await ask('/route/sandboxes', { resources: { memory: '256Mi' }, env: { GREETING: 'hi' } });
	try {
		assert.equal((await ask(`/route/sandboxes/${made.id}/execute`, { command: ['sh', '-c', 'test $GREETING = hi && echo 1 > kept'] })).exitCode, 0);
		assert.equal((await ask(`/route/sandboxes/${made.id}/pause`)).status, 'suspended');
		const again = await ask(`/route/sandboxes/${made.id}/execute`, { command: ['grep', '-q', '1', 'kept'] });
		assert.equal(again.exitCode, 0); // it was taken up again for that
	} finally {
		await ask(`/route/sandboxes/${made.id}`, undefined, 'DELETE');
	}
	await assert.rejects(ask(`/route/sandboxes/${made.id}/execute`, { command: ['true'] }));
});

test('c.var.sandbox: many requests at once have a sandbox each', async () => {
	const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => ask('/route/run', { exec: ['sh', '-c', `echo ${n} > n; cat n; ls | wc -l`] })));
	assert.deepEqual(answers.map((one) => one.stdout), Array.from({ length: 8 }, (_, n) => `${n}\n1\n`));
});

test('a runtime that there is not is refused with its name', async () => {
	await assert.rejects(ask('/route/sandboxes', { runtime: 'cobol:85' }), /cobol:85/);
});
