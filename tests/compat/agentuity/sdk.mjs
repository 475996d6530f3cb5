// SPDX-License-Identifier: Apache-2.0
// Every example of the documentation pages "Using the Sandbox API" (A) and "Running Code in Sandboxes" (B), with the stock client,
// unmodified, against burrow. base:latest stands for other runtimes. It has python3 and git but neither bun nor node: where an
// example runs one of these, python3 or sh does the same here, and the title says so.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Readable, Writable } from 'node:stream';
import { after, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import * as sdk from '@agentuity/server';
import {
	APIClient,
	SandboxClient,
	StreamStorageService,
	createServerFetchAdapter,
	executionGet,
	sandboxCreate,
	sandboxDestroy,
	sandboxDownloadArchive,
	sandboxEventList,
	sandboxExecute,
	sandboxGet,
	sandboxResolve,
	sandboxUploadArchive,
} from '@agentuity/server';

const url = process.env.AGENTUITY_TRANSPORT_URL;
const quiet = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {}, child: () => quiet };
const logger = quiet;
const client = new SandboxClient({ apiKey: process.env.AGENTUITY_SDK_KEY });
const raw = new APIClient(url, quiet, process.env.AGENTUITY_SDK_KEY, { maxRetries: 0 });
const made = [];

async function create(options) {
	const sandbox = await client.create(options);
	made.push(sandbox);
	return sandbox;
}

after(async () => {
	for (const sandbox of made) await sandbox.destroy().catch(() => {});
});

// Collects what is written to it.
function collector() {
	const chunks = [];
	const stream = new Writable({
		write(chunk, _encoding, done) {
			chunks.push(chunk);
			done();
		},
	});
	return { stream, text: () => Buffer.concat(chunks).toString() };
}

async function readText(stream) {
	const reader = stream.getReader();
	const decoder = new TextDecoder();
	let output = '';
	while (true) {
		const { done, value } = await reader.read();
		if (done) break;
		output += decoder.decode(value, { stream: true });
	}
	return output + decoder.decode();
}

async function readOutputUrl(url) {
	const response = await fetch(url);
	if (!response.ok || !response.body) throw new Error(`Unable to read sandbox output: ${response.status}`);
	return readText(response.body);
}

// A tar of one file.
function tarOf(name, content) {
	const header = Buffer.alloc(512);
	header.write(name);
	header.write('0000644\0', 100);
	header.write('0000000\0', 108);
	header.write('0000000\0', 116);
	header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124);
	header.write('00000000000\0', 136);
	header.write('        0', 148);
	header.write('ustar\x0000', 257);
	const sum = header.reduce((total, byte) => total + byte, 0);
	header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
	const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
	body.write(content);
	return Buffer.concat([header, body, Buffer.alloc(1024)]);
}

async function until(fn, what) {
	const deadline = Date.now() + 30_000;
	while (true) {
		const value = await fn();
		if (value) return value;
		assert.ok(Date.now() < deadline, `waited for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}

// ---- A: Using the Sandbox API ----

test('A, client: the key comes from the environment', async () => {
	const { runtimes } = await new SandboxClient().listRuntimes();
	assert.ok(runtimes.length > 0);
});

test('A, client: AGENTUITY_CLI_KEY serves too', async () => {
	const key = process.env.AGENTUITY_SDK_KEY;
	delete process.env.AGENTUITY_SDK_KEY;
	process.env.AGENTUITY_CLI_KEY = key;
	try {
		await new SandboxClient().listRuntimes();
	} finally {
		process.env.AGENTUITY_SDK_KEY = key;
		delete process.env.AGENTUITY_CLI_KEY;
	}
});

test('A, client: url, with a slash behind it, and orgId', async () => {
	const other = new SandboxClient({ url: `${url}/`, orgId: 'org_any', logger });
	assert.ok((await other.listRuntimes()).runtimes.length > 0);
});

test('A, client: a wrong key is refused', async () => {
	await assert.rejects(new SandboxClient({ apiKey: 'brw_wrong_wrong_wrong_wrong' }).list(), (error) => {
		assert.equal(error._tag, 'APIErrorResponse');
		assert.equal(error.status, 401);
		return true;
	});
});

test('A, runtime catalog', async () => {
	const { runtimes } = await client.listRuntimes({ limit: 50 });
	logger.info('sandbox runtimes', { names: runtimes.map((runtime) => runtime.name) });
	assert.ok(runtimes.some((runtime) => runtime.name === 'base:latest'));
});

test('A, one-shot execution', async () => {
	const result = await client.run({
		runtime: 'base:latest',
		command: { exec: ['python3', '-c', 'print(sum([1, 2, 3]))'] },
		resources: { memory: '256Mi', cpu: '500m' },
		timeout: { execution: '30s' },
	});
	assert.equal(result.exitCode, 0);
	assert.equal(result.stdout, '6\n');
	assert.equal(result.stderr, '');
	assert.match(result.sandboxId, /^sbx_/);
	assert.equal(typeof result.durationMs, 'number');
	assert.equal((await client.get(result.sandboxId)).status, 'terminated');
});

test('A, write files before running (python3 for bun)', async () => {
	const result = await client.run({
		runtime: 'base:latest',
		command: {
			exec: ['python3', 'index.py'],
			files: [
				{ path: 'index.py', content: Buffer.from('import json; print("hello from Python", json.load(open("data.json"))["items"])') },
				{ path: 'data.json', content: Buffer.from(JSON.stringify({ items: [1, 2, 3] })) },
			],
		},
	});
	assert.equal(result.stdout, 'hello from Python [1, 2, 3]\n');
});

test('A, stream output (sh for bun)', async () => {
	const stdout = collector();
	const stderr = collector();
	const result = await client.run(
		{ runtime: 'base:latest', command: { exec: ['sh', '-c', 'printf err >&2; printf out'] } },
		{ stdout: stdout.stream, stderr: stderr.stream }
	);
	assert.equal(result.exitCode, 0);
	assert.deepEqual([stdout.text(), stderr.text()], ['out', 'err']);
	assert.deepEqual([result.stdout, result.stderr], ['out', 'err']);
});

test('A, stream output: input given as a stream', async () => {
	const result = await client.run({ command: { exec: ['cat'] } }, { stdin: Readable.from([Buffer.from('some '), Buffer.from('input')]) });
	assert.equal(result.stdout, 'some input');
	assert.equal(result.exitCode, 0);
});

test('A, stream output: an input that stays open does not hold the end', async () => {
	const stdin = new PassThrough();
	stdin.write('first line\nsecond line\n');
	const result = await client.run({ command: { exec: ['head', '-n', '1'] } }, { stdin });
	assert.equal(result.stdout, 'first line\n');
	stdin.destroy();
});

test('A, stream output: a mebibyte of input comes back', async () => {
	const block = Buffer.alloc(1 << 20, 'burrow ');
	const result = await client.run({ command: { exec: ['sha1sum'] } }, { stdin: Readable.from([block]) });
	const { createHash } = await import('node:crypto');
	assert.equal(result.stdout.split(' ')[0], createHash('sha1').update(block).digest('hex'));
});

test('A, stream output: without a key there is no input', async () => {
	const key = process.env.AGENTUITY_SDK_KEY;
	delete process.env.AGENTUITY_SDK_KEY;
	try {
		await assert.rejects(new SandboxClient().run({ command: { exec: ['cat'] } }, { stdin: Readable.from(['x']) }), /API key/);
	} finally {
		process.env.AGENTUITY_SDK_KEY = key;
	}
});

test('A, exit codes of runs', async () => {
	for (const [exec, timeout, code] of [
		[['sh', '-c', 'exit 3'], undefined, 3],
		[['no-such-command'], undefined, 127],
		[['sh', '-c', 'kill -9 $$'], undefined, 137],
		[['sleep', '60'], '300ms', 124],
	]) {
		const result = await client.run({ command: { exec }, timeout: timeout ? { execution: timeout } : undefined });
		assert.equal(result.exitCode, code, exec.join(' '));
	}
});

test('A, a process that made a run can end at once', async () => {
	const code = `
		import { SandboxClient } from '@agentuity/server';
		const result = await new SandboxClient().run({ command: { exec: ['echo', 'hi'] } });
		process.stdout.write(result.stdout);`;
	const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'], cwd: import.meta.dirname ?? '.' });
	const output = collector();
	child.stdout.pipe(output.stream);
	const timer = setTimeout(() => child.kill(), 30_000);
	const [status] = await once(child, 'exit');
	clearTimeout(timer);
	assert.equal(status, 0, 'a poll that nobody answers keeps the process alive');
	assert.equal(output.text(), 'hi\n');
});

test('A, interactive sandboxes (sh and python3 for bun; without network)', async () => {
	const sandbox = await client.create({
		runtime: 'base:latest',
		resources: { memory: '1Gi', cpu: '1000m' },
		timeout: { idle: '10m', execution: '2m' },
	});
	try {
		assert.equal((await sandbox.execute({ command: ['git', 'init', '-q', '.'] })).exitCode, 0);
		assert.equal((await sandbox.execute({ command: ['mkdir', 'lib'] })).exitCode, 0);
		await sandbox.writeFiles([
			{ path: 'lib/schema.py', content: Buffer.from('def parse(value):\n    return value["name"]\n') },
			{ path: 'index.py', content: Buffer.from('from lib.schema import parse\nprint(parse({"name": "Ada"}), end="")\n') },
		]);
		const execution = await sandbox.execute({ command: ['python3', 'index.py'] });
		assert.match(execution.executionId, /^exe_/);
		assert.equal(execution.exitCode, 0);
		assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'Ada');
		const info = await sandbox.get();
		assert.deepEqual([info.resources.memory, info.resources.cpu], ['1Gi', '1000m']);
		assert.equal(info.executions, 3);
	} finally {
		await sandbox.destroy();
	}
	await assert.rejects(client.get(sandbox.id), (error) => error.status === 404);
});

test('A, interactive sandboxes: with a network', async () => {
	const sandbox = await client.create({ network: { enabled: true } });
	try {
		assert.equal((await client.get(sandbox.id)).networkEnabled, true);
	} finally {
		await sandbox.destroy();
	}
});

test('A, file operations', async () => {
	const sandbox = await client.create({ runtime: 'base:latest' });
	try {
		await sandbox.mkDir('src', true);
		const filesWritten = await sandbox.writeFiles([{ path: 'src/index.ts', content: Buffer.from('process.stdout.write("ok")') }]);
		assert.equal(filesWritten, 1);
		const files = await sandbox.listFiles('src');
		assert.deepEqual(files.map((file) => [file.path, file.size, file.isDir]), [['index.ts', 26, false]]);
		const source = await readText(await sandbox.readFile('src/index.ts'));
		assert.equal(source, 'process.stdout.write("ok")');
		const removedFile = await sandbox.rmFile('src/index.ts');
		const removedDir = await sandbox.rmDir('src', true);
		assert.deepEqual([removedFile.found, removedDir.found], [true, true]);
		assert.deepEqual([(await sandbox.rmFile('src/index.ts')).found, (await sandbox.rmDir('src', true)).found], [false, false]);
		await assert.rejects(sandbox.readFile('src/index.ts'), /404/);
		assert.deepEqual((await sandbox.listFiles()).map((file) => file.path).filter((path) => !path.startsWith('.')), []);
	} finally {
		await sandbox.destroy();
	}
});

test('A, reading execution output (sh for bun)', async () => {
	const sandbox = await create({});
	const execution = await sandbox.execute({ command: ['sh', '-c', 'printf "build output"'] });
	const stdout = execution.stdoutStreamUrl ? await readOutputUrl(execution.stdoutStreamUrl) : '';
	assert.equal(execution.exitCode, 0);
	assert.equal(stdout, 'build output');
	assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'build output', 'it can be read again');
});

test('A, streaming execution output (sh for bun)', async () => {
	const sandbox = await client.create({ runtime: 'base:latest' });
	const stdout = collector();
	const stderr = collector();
	try {
		const execution = await sandbox.execute({
			command: ['sh', '-c', 'printf "line 1"; printf "err 1" >&2'],
			pipe: { stdout: stdout.stream, stderr: stderr.stream },
		});
		assert.equal(execution.exitCode, 0);
		assert.deepEqual([stdout.text(), stderr.text()], ['line 1', 'err 1']);
	} finally {
		await sandbox.destroy();
	}
});

test('A, streaming execution output: it arrives while the command runs', async () => {
	const sandbox = await create({});
	const seen = [];
	const stdout = new Writable({
		write(chunk, _encoding, done) {
			seen.push(chunk.toString());
			if (seen.join('') === 'waiting\n') sandbox.writeFiles([{ path: 'go', content: Buffer.from('') }]).then(() => done(), done);
			else done();
		},
	});
	const execution = await sandbox.execute({
		command: ['sh', '-c', 'echo waiting; until [ -e go ]; do sleep 0.02; done; echo released'],
		pipe: { stdout },
	});
	assert.equal(execution.exitCode, 0);
	assert.equal(seen.join(''), 'waiting\nreleased\n');
});

test('A, environment variables (sh for bun)', async () => {
	const result = await client.run({
		runtime: 'base:latest',
		command: { exec: ['sh', '-c', 'printf %s "$API_URL"'] },
		env: { API_URL: 'https://api.example.com' },
	});
	assert.equal(result.stdout, 'https://api.example.com');

	const sandbox = await create({ env: { FIRST: '1' } });
	const updated = await sandbox.setEnv({ API_URL: 'https://api.example.com', DEBUG: 'true' });
	assert.equal(updated.API_URL, 'https://api.example.com');
	const left = await sandbox.setEnv({ DEBUG: null });
	assert.deepEqual(left, { FIRST: '1', API_URL: 'https://api.example.com' });
	const execution = await sandbox.execute({ command: ['sh', '-c', 'echo $API_URL-$DEBUG-$FIRST'] });
	assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'https://api.example.com--1\n');
});

test('A, exposing ports: a web server in a sandbox has a URL', async () => {
	const sandbox = await client.create({ runtime: 'base:latest', network: { port: 3000 }, command: { exec: ['python3', '-m', 'http.server', '3000', '--bind', '127.0.0.1'] } });
	try {
		const { url } = await client.get(sandbox.id);
		assert.match(url, /^http:\/\//);
		const deadline = Date.now() + 60000;
		let answer; // 502 until it listens
		while ((answer = await fetch(url)).status !== 200) assert.ok(Date.now() < deadline, `no answer from ${url}`);
		assert.match(await answer.text(), /Directory listing/);
		await sandbox.destroy();
		await assert.rejects(fetch(url));
	} finally {
		await sandbox.destroy().catch(() => {});
	}
});

test('A, project association', async () => {
	const sandbox = await client.create({ runtime: 'base:latest', projectId: 'proj_abc123' });
	try {
		const { sandboxes } = await client.list({ projectId: 'proj_abc123', limit: 10 });
		assert.deepEqual(sandboxes.map((item) => item.sandboxId), [sandbox.id]);
	} finally {
		await sandbox.destroy();
	}
});

test('A, cancelling commands: execute', async () => {
	const sandbox = await create({});
	const controller = new AbortController();
	const timeout = setTimeout(() => controller.abort(), 500);
	await assert.rejects(sandbox.execute({ command: ['sh', '-c', 'sleep 60'], signal: controller.signal }));
	clearTimeout(timeout);
	assert.equal((await sandbox.get()).status, 'running', 'only the waiting is cancelled');
	await assert.rejects(sandbox.execute({ command: ['true'] }), (error) => error._tag === 'SandboxBusyError');
});

test('A, cancelling commands: run', async () => {
	const controller = new AbortController();
	const stdout = new Writable({
		write(_chunk, _encoding, done) {
			controller.abort();
			done();
		},
	});
	const name = `cancelled-${Date.now()}`;
	await assert.rejects(
		client.run({ name, command: { exec: ['sh', '-c', 'echo on; sleep 60'] } }, { signal: controller.signal, stdout }),
		(error) => error._tag === 'ExecutionCancelledError'
	);
	await until(async () => (await client.list({ name })).total === 0, 'the sandbox to be deleted');
});

test('A, sandbox management', async () => {
	const name = `managed-${Date.now()}`;
	const sandbox = await client.create({ name });
	const { sandboxes, total } = await client.list({ status: 'idle', limit: 10, offset: 0, name });
	assert.equal(total, 1);
	for (const info of sandboxes) {
		assert.deepEqual([info.sandboxId, info.status, info.executions], [sandbox.id, 'idle', 0]);
	}
	const info = await client.get(sandbox.id);
	assert.equal(info.status, 'idle');
	assert.ok(!Number.isNaN(Date.parse(info.createdAt)));
	await sandbox.writeFiles([{ path: 'here.txt', content: Buffer.from('x') }]);
	const existing = await client.connect(sandbox.id);
	assert.equal(existing.status, 'idle');
	const files = await existing.listFiles();
	assert.ok(files.map((file) => file.path).includes('here.txt'));
	await existing.destroy();
	await assert.rejects(client.get(sandbox.id), (error) => error.status === 404);
});

test('A, sandbox management: lists by every field', async () => {
	for (const sort of ['name', 'created', 'updated', 'status', 'mode', 'execution_count']) {
		for (const direction of ['asc', 'desc']) {
			const { sandboxes, total } = await client.list({ sort, direction, limit: 5 });
			assert.ok(sandboxes.length <= 5 && total >= sandboxes.length);
		}
	}
});

test('A, background jobs', async () => {
	const sandbox = await client.create({ runtime: 'base:latest' });
	try {
		const job = await client.createJob(sandbox.id, { command: ['sh', '-c', 'sleep 30 && echo done'] });
		const current = await job.get();
		assert.equal(current.status, 'running');
		const { jobs } = await client.listJobs(sandbox.id, 10);
		assert.deepEqual(jobs.map((item) => item.jobId), [job.id]);
		await job.stop();
		assert.equal((await until(async () => (await job.get()).status === 'cancelled' && job.get(), 'the job to stop')).status, 'cancelled');
	} finally {
		await sandbox.destroy();
	}
});

test('A, lifecycle and failure checks: an unavailable runtime', async () => {
	await assert.rejects(client.create({ runtime: 'no-such-runtime:1' }), (error) => [400, 404].includes(error.status) && /no-such-runtime/.test(error.message));
});

test('A, lifecycle and failure checks: statuses of executions', async () => {
	const sandbox = await create({});
	for (const [command, timeout, status, code] of [
		[['true'], undefined, 'completed', 0],
		[['false'], undefined, 'completed', 1],
		[['no-such-command'], undefined, 'failed', 127],
		[['sleep', '60'], '300ms', 'timeout', 124],
	]) {
		const execution = await sandbox.execute({ command, timeout });
		assert.deepEqual([execution.status, execution.exitCode], [status, code]);
		assert.equal(typeof execution.durationMs, 'number');
	}
});

test('A, lifecycle and failure checks: cut output is said', async () => {
	const sandbox = await create({});
	const { executionId } = await sandbox.execute({ command: ['sh', '-c', 'head -c 100000000 /dev/zero'] });
	assert.equal((await client.getExecution(executionId)).outputTruncated, true);
});

test('A, lifecycle and failure checks: an idle sandbox disappears and its events tell why', async () => {
	const sandbox = await create({ timeout: { idle: '1s' } });
	await until(async () => (await client.get(sandbox.id)).status === 'terminated', 'the idle timeout');
	const { events } = await client.listEvents(sandbox.id, { direction: 'desc', limit: 1 });
	assert.equal(events[0].type, 'lifecycle:terminated');
	assert.match(JSON.stringify(events[0].event), /idle/);
});

test('A, pause and resume (sh for bun)', async () => {
	const sandbox = await create({});
	await sandbox.writeFiles([{ path: 'kept', content: Buffer.from('yes') }]);
	await sandbox.pause();
	assert.equal((await sandbox.get()).status, 'suspended');
	assert.equal(await readText(await sandbox.readFile('kept')), 'yes', 'files can be read meanwhile');
	await sandbox.resume();
	assert.equal((await sandbox.get()).status, 'idle');
	const execution = await sandbox.execute({ command: ['cat', 'kept'] });
	assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'yes');
	await client.pause(sandbox.id);
	await client.resume(sandbox.id);
	await assert.rejects(client.resume(sandbox.id), (error) => error.status === 409);
});

test('A, pause and resume: execute wakes, and says so', async () => {
	const sandbox = await create({});
	await sandbox.pause();
	await assert.rejects(sandbox.pause(), (error) => error.status === 409);
	const woken = await sandboxExecute(raw, { sandboxId: sandbox.id, options: { command: ['true'] } });
	assert.equal(woken.autoResumed, true);
	await until(async () => (await sandbox.get()).status === 'idle', 'the command to end');
	const awake = await sandboxExecute(raw, { sandboxId: sandbox.id, options: { command: ['true'] } });
	assert.equal(awake.autoResumed, undefined);
	await until(async () => (await sandbox.get()).status === 'idle', 'the command to end');
	await sandbox.pause();
	assert.equal((await sandbox.execute({ command: ['true'] })).exitCode, 0);
});

test('A, pause and resume: terminatesAt with a paused timeout', async () => {
	const sandbox = await client.create({ runtime: 'base:latest', timeout: { idle: '10m', paused: '24h' } });
	try {
		const pauseResult = await sandbox.pause();
		assert.deepEqual([pauseResult.sandboxId, pauseResult.status], [sandbox.id, 'suspended']);
		const hours = (Date.parse(pauseResult.terminatesAt) - Date.now()) / 3_600_000;
		assert.ok(hours > 23.9 && hours < 24.1, pauseResult.terminatesAt);
	} finally {
		await sandbox.destroy();
	}
	const endless = await create({ timeout: { paused: '0s' } });
	assert.equal((await endless.pause()).terminatesAt, undefined);
});

test('A, checkpoints (sh for bun)', async () => {
	const sandbox = await create({});
	await sandbox.writeFiles([{ path: 'package.json', content: Buffer.from('{}') }]);
	const checkpoint = await client.createDiskCheckpoint(sandbox.id, 'before-upgrade');
	assert.deepEqual([checkpoint.name, checkpoint.parent, checkpoint.sandboxId], ['before-upgrade', '', sandbox.id]);
	await sandbox.execute({ command: ['sh', '-c', 'echo changed >package.json; touch added'] });
	await checkpoint.restore();
	assert.equal(await readText(await sandbox.readFile('package.json')), '{}');
	assert.deepEqual((await sandbox.listFiles()).map((file) => file.path), ['package.json']);
	const second = await client.createDiskCheckpoint(sandbox.id, 'second');
	assert.equal(second.parent, 'before-upgrade');
	const checkpoints = await client.listDiskCheckpoints(sandbox.id);
	assert.deepEqual(checkpoints.map((item) => item.name), ['before-upgrade', 'second']);
	const found = await client.getDiskCheckpoint(sandbox.id, checkpoint.id);
	assert.equal(found.name, 'before-upgrade');
	await found.restore();
	await checkpoint.delete();
	await sdk.diskCheckpointRestore(raw, { sandboxId: sandbox.id, checkpointId: second.id });
	assert.deepEqual((await sdk.diskCheckpointList(raw, { sandboxId: sandbox.id })).map((item) => item.name), ['second']);
	await assert.rejects(checkpoint.restore(), (error) => error.status === 404);
	await assert.rejects(checkpoint.delete(), (error) => error.status === 404);
	await assert.rejects(client.createDiskCheckpoint(sandbox.id, 'second'), (error) => error.status === 409);
	await sandbox.pause();
	await assert.rejects(client.createDiskCheckpoint(sandbox.id, 'third'), (error) => error.status === 409);
});

test('A, snapshots (git and python3 for bun; without network)', async () => {
	const sandbox = await client.create({ runtime: 'base:latest' });
	let snapshot;
	try {
		await sandbox.execute({ command: ['git', 'init', '-q', '.'] });
		await sandbox.writeFiles([{ path: 'lib.py', content: Buffer.from('word = "zod"') }]);
		snapshot = await client.createSnapshot(sandbox.id, { name: 'bun-zod', tag: 'bun-zod', description: 'Bun project with Zod installed' });
		assert.match(snapshot.snapshotId, /^snp_/);
	} finally {
		await sandbox.destroy();
	}
	const next = await client.create({ snapshot: 'bun-zod', resources: { memory: '512Mi' } });
	const execution = await next.execute({ command: ['python3', '-c', 'import lib; print(lib.word)'] });
	assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'zod\n');
	const info = await next.get();
	assert.deepEqual([info.snapshot.id, info.snapshot.public, info.snapshot.tag], [snapshot.snapshotId, false, 'bun-zod']);
	assert.match(info.snapshot.user.id, /^user_/);
	const { sandboxes } = await client.list({ snapshotId: snapshot.snapshotId });
	assert.deepEqual(sandboxes.map((item) => item.sandboxId), [next.id]);

	const child = await client.createSnapshot(next.id);
	assert.deepEqual([child.tag, child.parentSnapshotId], ['latest', snapshot.snapshotId]);
	const lineage = await client.getSnapshotLineage({ snapshot: child.snapshotId });
	assert.deepEqual(lineage.lineage.map((entry) => entry.snapshotId), [child.snapshotId, snapshot.snapshotId]);
	assert.equal((await client.getSnapshotLineage({ name: 'bun-zod', tag: 'bun-zod', limit: 5 })).total, 1);
	await next.destroy();

	const { snapshots, total } = await client.listSnapshots({ limit: 20 });
	assert.ok(total >= 2 && snapshots.some((item) => item.snapshotId === snapshot.snapshotId));
	for (const sort of ['name', 'created', 'size', 'files']) await client.listSnapshots({ sort, direction: 'asc', limit: 1, offset: 0 });
	assert.equal((await client.listSnapshots({ sandboxId: sandbox.id })).total, 1);
	const whole = await client.getSnapshot(snapshot.snapshotId);
	assert.equal(whole.fileCount, whole.files.length);
	assert.ok(whole.files.some((file) => file.path.endsWith('lib.py') && file.size === 12 && /^[0-9a-f]{64}$/.test(file.sha256)));

	assert.equal((await client.tagSnapshot(snapshot.snapshotId, 'v1.0')).tag, 'v1.0');
	assert.equal((await client.tagSnapshot(snapshot.snapshotId, null)).tag, undefined);
	await client.deleteSnapshot(snapshot.snapshotId);
	await client.deleteSnapshot(child.snapshotId);
	await assert.rejects(client.getSnapshot(snapshot.snapshotId), (error) => error.status === 404);
	await assert.rejects(client.create({ snapshot: 'bun-zod' }), (error) => error.status === 404);
	await assert.rejects(client.create({ snapshot: 'bun-zod', runtime: 'base:latest' }));
	await assert.rejects(client.createSnapshot(sandbox.id, {}), (error) => error.status === 404);
});

test('A, snapshots: a run from one, while its sandbox is at work', async () => {
	const sandbox = await create({});
	await sandboxExecute(raw, { sandboxId: sandbox.id, options: { command: ['sh', '-c', 'echo busy >state; touch ready; sleep 600'] } });
	await until(async () => (await sandbox.listFiles()).some((file) => file.path === 'ready'), 'the command to write');
	const { snapshotId } = await client.createSnapshot(sandbox.id, { name: 'busy' });
	const result = await client.run({ snapshot: snapshotId, command: { exec: ['cat', 'state'] } });
	assert.deepEqual([result.exitCode, result.stdout], [0, 'busy\n']);
	await client.deleteSnapshot(snapshotId);
});

test('A, snapshots: public ones need no key', async () => {
	const sandbox = await create({});
	const { snapshotId } = await client.createSnapshot(sandbox.id, { name: 'open', public: true });
	const nobody = new APIClient(url, quiet, undefined, { maxRetries: 0 });
	assert.ok((await sdk.snapshotPublicList(nobody, { limit: 100 })).snapshots.some((item) => item.snapshotId === snapshotId));
	const seen = await sdk.snapshotPublicGet(nobody, { snapshotRef: snapshotId });
	assert.equal(seen.public, true);
	assert.equal((await sdk.snapshotPublicGet(nobody, { snapshotRef: seen.fullName })).snapshotId, snapshotId);
	const next = await create({ snapshot: seen.fullName });
	assert.equal((await next.get()).snapshot.org.id, seen.org.id);
	await client.deleteSnapshot(snapshotId);
	await assert.rejects(sdk.snapshotPublicGet(nobody, { snapshotRef: snapshotId }), (error) => error.status === 404);
});

test('A, snapshots: builds by the lower-level functions', async () => {
	const archive = gzipSync(tarOf('index.js', 'hello'));
	const file = { path: 'index.js', size: 5, sha256: '0'.repeat(64), contentType: 'text/javascript', mode: 420 };
	const init = { runtime: 'base:latest', name: 'low', tag: 'v1', contentHash: 'h1' };
	const begun = await sdk.snapshotBuildInit(raw, { ...init, encrypt: true, git: { branch: 'main' } });
	assert.equal(begun.publicKey, undefined);
	const put = await fetch(begun.uploadUrl, { method: 'PUT', headers: { 'Content-Type': 'application/gzip' }, body: archive });
	assert.equal(put.status, 200);
	const built = await sdk.snapshotBuildFinalize(raw, {
		snapshotId: begun.snapshotId, sizeBytes: 5, fileCount: 1, files: [file], env: { WORD: 'x' }, metadata: { author: 'team' },
	});
	assert.deepEqual([built.name, built.tag, built.userMetadata], ['low', 'v1', { author: 'team' }]);
	const again = await sdk.snapshotBuildInit(raw, init);
	assert.deepEqual([again.unchanged, again.existingId, again.existingName, again.existingTag], [true, begun.snapshotId, 'low', 'v1']);

	const open = await sdk.snapshotBuildInit(raw, { ...init, name: 'low-public', force: true, public: true });
	assert.equal(open.uploadUrl, undefined);
	const result = await sdk.snapshotUpload(raw, { snapshotId: open.snapshotId, body: archive, contentLength: archive.length });
	assert.deepEqual([result.success, result.scanned], [true, false]);
	await sdk.snapshotBuildFinalize(raw, { snapshotId: open.snapshotId, sizeBytes: 5, fileCount: 1, files: [file] });
	for (const { snapshotId } of [begun, open]) {
		const ran = await client.run({ snapshot: snapshotId, command: { exec: ['sh', '-c', 'cat index.js; printf %s "$WORD"'] } });
		assert.equal(ran.stdout, snapshotId === begun.snapshotId ? 'hellox' : 'hello');
		await client.deleteSnapshot(snapshotId);
	}
});

test('A, events', async () => {
	const sandbox = await create({});
	await sandbox.execute({ command: ['true'] });
	const { events } = await client.listEvents(sandbox.id, { limit: 50, direction: 'asc' });
	assert.equal(events[0].type, 'create');
	for (const event of events) assert.ok(!Number.isNaN(Date.parse(event.createdAt)));
});

test('A, create options that this server has', async () => {
	const sandbox = await create({
		runtime: 'base:latest',
		name: 'options',
		description: 'all of them',
		resources: { memory: '256Mi', cpu: '500m', disk: '512Mi' },
		projectId: 'proj_options',
		timeout: { idle: '10m', execution: '30s', paused: '24h' },
		env: { A: 'b' },
		files: [{ path: 'made/first.txt', content: Buffer.from('first') }],
		metadata: { ticket: 7, tags: ['a'] },
		scopes: ['services:read', 'services:write'],
	});
	const info = await sandbox.get();
	assert.deepEqual([info.name, info.description], ['options', 'all of them']);
	assert.deepEqual(info.resources, { memory: '256Mi', cpu: '500m', disk: '512Mi' });
	assert.deepEqual(info.timeout, { idle: '10m', execution: '30s', paused: '24h' });
	assert.deepEqual(info.metadata, { ticket: 7, tags: ['a'] });
	assert.equal(info.networkEnabled, false);
	assert.equal(await readText(await sandbox.readFile('made/first.txt')), 'first');
});

test('A, create options: an initial command', async () => {
	const sandbox = await create({ command: { exec: ['echo', 'first'], mode: 'interactive' } });
	assert.equal(await readOutputUrl(sandbox.stdoutStreamUrl), 'first\n');
	const { executions } = await client.listExecutions(sandbox.id);
	assert.equal(executions.length, 1);
});

test('A, execute options: files, timeout and stream', async () => {
	const sandbox = await create({});
	const execution = await sandbox.execute({
		command: ['cat', 'input.txt'],
		files: [{ path: 'input.txt', content: Buffer.from('from a file') }],
		timeout: '30s',
		stream: { stderr: 'ignore', timestamps: false },
	});
	assert.equal(await readOutputUrl(execution.stdoutStreamUrl), 'from a file');
	assert.equal(execution.stderrStreamUrl, undefined);
});

test('A, run options: combined and ignored output', async () => {
	const stream = await (await fetch(process.env.AGENTUITY_STREAM_URL, {
		method: 'POST',
		headers: { Authorization: `Bearer ${process.env.AGENTUITY_SDK_KEY}`, 'Content-Type': 'application/json' },
		body: JSON.stringify({ name: 'both' }),
	})).json();
	const both = await client.run({ command: { exec: ['sh', '-c', 'echo out; echo err >&2'] }, stream: { stdout: stream.id, stderr: stream.id } });
	assert.equal(both.stdout, 'out\nerr\n');
	assert.equal(both.stderr, both.stdout);
	const none = await client.run({ command: { exec: ['sh', '-c', 'echo out; exit 4'] }, stream: { stdout: 'ignore', stderr: 'ignore' } });
	assert.deepEqual([none.stdout, none.stderr, none.exitCode], ['', '', 4]);
});

// ---- B: Running Code in Sandboxes ----

test('B, one-shot', async () => {
	const result = await client.run({
		command: { exec: ['python3', '-c', 'print("Hello!")'] },
		resources: { memory: '256Mi', cpu: '500m' },
	});
	assert.deepEqual({ output: result.stdout, exitCode: result.exitCode }, { output: 'Hello!\n', exitCode: 0 });
});

test('B, interactive (git and python3 for npm and node; without network)', async () => {
	const sandbox = await client.create({ runtime: 'base:latest', resources: { memory: '1Gi' } });
	try {
		await sandbox.execute({ command: ['git', 'init', '-q'] });
		await sandbox.execute({ command: ['git', 'status'] });
		const result = await sandbox.execute({ command: ['python3', '-c', 'print("ready")'] });
		assert.equal(result.exitCode, 0);
	} finally {
		await sandbox.destroy();
	}
});

test('B, creating jobs', async () => {
	const sandbox = await create({ runtime: 'base:latest', resources: { memory: '2Gi' } });
	const job = await client.createJob(sandbox.id, { command: ['sh', '-c', 'until [ -e go ]; do sleep 0.02; done; echo done'] });
	assert.match(job.id, /^job_/);
	assert.equal((await client.getJob(sandbox.id, job.id)).status, 'running');
	await sandbox.writeFiles([{ path: 'go', content: Buffer.from('') }]);
	const status = await until(async () => {
		const now = await job.get();
		return now.status === 'completed' && now;
	}, 'the job to end');
	assert.equal(status.exitCode, 0);
	assert.equal(await readOutputUrl(status.stdoutStreamUrl), 'done\n');
});

test('B, job lifecycle: jobs run in parallel and can fail', async () => {
	const sandbox = await create({});
	const jobs = await Promise.all([1, 2, 3].map((n) => client.createJob(sandbox.id, { command: ['sh', '-c', `exit ${n}`] })));
	for (const [i, job] of jobs.entries()) {
		const ended = await until(async () => {
			const now = await job.get();
			return now.status === 'failed' && now;
		}, 'the job to fail');
		assert.equal(ended.exitCode, i + 1);
	}
	assert.equal((await sandbox.execute({ command: ['true'] })).exitCode, 0);
});

test('B, stopping jobs: gracefully and by force', async () => {
	const sandbox = await create({});
	const graceful = await client.createJob(sandbox.id, { command: ['sh', '-c', "trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.02; done"] });
	const deaf = await client.createJob(sandbox.id, { command: ['sh', '-c', "trap '' TERM; while :; do sleep 0.1; done"] });
	const { stdoutStreamUrl } = await graceful.get();
	const reader = (await fetch(stdoutStreamUrl)).body.getReader();
	assert.equal(Buffer.from((await reader.read()).value).toString(), 'on\n');
	await graceful.stop();
	await deaf.stop(true);
	for (const job of [graceful, deaf]) {
		assert.equal((await until(async () => (await job.get()).status !== 'running' && job.get(), 'the job to stop')).status, 'cancelled');
	}
	assert.equal(await readOutputUrl(stdoutStreamUrl), 'on\nbye\n');
});

test('B, sandbox events', async () => {
	const sandbox = await create({});
	const { events } = await sandboxEventList(raw, { sandboxId: sandbox.id, limit: 50, direction: 'asc' });
	assert.deepEqual(Object.keys(events[0]).filter((name) => ['eventId', 'sandboxId', 'type', 'event', 'createdAt'].includes(name)).length, 5);
	await sandbox.destroy();
	const after = await sandboxEventList(raw, { sandboxId: sandbox.id, direction: 'desc', limit: 1 });
	assert.equal(after.events[0].type, 'destroy');
});

test('B, security: network is off, limits and timeouts hold', async () => {
	const result = await client.run({
		command: { exec: ['python3', '-c', 'import socket\ntry:\n    socket.create_connection(("1.1.1.1", 80), 2)\n    print("out")\nexcept OSError:\n    print("in")'] },
	});
	assert.equal(result.stdout, 'in\n');
	const hungry = await client.run({ command: { exec: ['python3', '-c', 'x = bytearray(300 << 20)'] }, resources: { memory: '64Mi' } });
	assert.equal(hungry.exitCode, 137);
});

// ---- the functions below the class ----

test('low level: create, execute, get with waits, destroy', async () => {
	const sandbox = await sandboxCreate(raw, { options: { command: { exec: ['sh', '-c', 'exit 5'], mode: 'oneshot' } } });
	const ended = await executionGet(raw, { executionId: sandbox.executionId, wait: '5m' });
	assert.deepEqual([ended.status, ended.exitCode], ['completed', 5]);
	assert.equal((await sandboxGet(raw, { sandboxId: sandbox.sandboxId, waitForStatus: ['terminated'], waitMs: 60000 })).exitCode, 5);
	await sandboxDestroy(raw, { sandboxId: sandbox.sandboxId });
	assert.equal((await sandboxGet(raw, { sandboxId: sandbox.sandboxId, includeDeleted: true })).status, 'deleted');
});

test('low level: typed errors of execute', async () => {
	await assert.rejects(sandboxExecute(raw, { sandboxId: 'sbx_none', options: { command: ['true'] } }), (error) => error._tag === 'SandboxNotFoundError');
	const sandbox = await create({});
	await sandboxExecute(raw, { sandboxId: sandbox.id, options: { command: ['sleep', '60'] } });
	await assert.rejects(sandboxExecute(raw, { sandboxId: sandbox.id, options: { command: ['true'] } }), (error) => error._tag === 'SandboxBusyError');
});

test('low level: archives both ways', async () => {
	const sandbox = await create({});
	await sandbox.writeFiles([
		{ path: 'tree/a.txt', content: Buffer.from('alpha') },
		{ path: 'tree/sub/b.txt', content: Buffer.from('beta') },
	]);
	for (const format of ['tar.gz', 'zip']) {
		const archive = Buffer.from(await new Response(await sandboxDownloadArchive(raw, { sandboxId: sandbox.id, path: 'tree', format })).arrayBuffer());
		if (format === 'tar.gz') assert.ok(gunzipSync(archive).includes('alpha'));
		else assert.equal(archive.subarray(0, 2).toString(), 'PK');
		await sandboxUploadArchive(raw, { sandboxId: sandbox.id, archive, path: `copy-${format}`, format });
		assert.equal(await readText(await sandbox.readFile(`copy-${format}/sub/b.txt`)), 'beta');
	}
	await assert.rejects(sandboxUploadArchive(raw, { sandboxId: sandbox.id, archive: Buffer.from('no archive'), path: 'x' }), /400/);
});

test('low level: a sandbox is resolved', async () => {
	const sandbox = await create({ name: 'resolved' });
	const info = await sandboxResolve(raw, sandbox.id);
	assert.deepEqual([info.id, info.name, info.projectId], [sandbox.id, 'resolved', null]);
	assert.ok(info.region && info.orgId);
});

test('low level: the stream service', async () => {
	const adapter = createServerFetchAdapter(
		{ headers: { Authorization: `Bearer ${process.env.AGENTUITY_SDK_KEY}` }, onBefore: async (_url, _options, invoke) => invoke() },
		quiet
	);
	const streams = new StreamStorageService(process.env.AGENTUITY_STREAM_URL, adapter);
	const stream = await streams.create('compat', { metadata: { suite: 'compat' } });
	assert.match(stream.id, /^stream_/);
	await stream.write('hello ');
	await stream.write('stream');
	await stream.close();
	assert.equal(await readOutputUrl(stream.url ?? `${process.env.AGENTUITY_STREAM_URL}/${stream.id}`), 'hello stream');
	assert.equal(await readText(await streams.download(stream.id)), 'hello stream');
	const info = await streams.get(stream.id);
	assert.deepEqual([info.id, info.metadata], [stream.id, { suite: 'compat' }]);
	const listed = await streams.list({ metadata: { suite: 'compat' } });
	assert.ok(listed.streams.some((entry) => entry.id === stream.id));
	await streams.delete(stream.id);
	await assert.rejects(streams.get(stream.id));
});

test('low level: fifty runs at once', async () => {
	const results = await Promise.all(Array.from({ length: 50 }, (_, n) => client.run({ command: { exec: ['echo', String(n)] } })));
	assert.deepEqual(results.map((result) => result.stdout), Array.from({ length: 50 }, (_, n) => `${n}\n`));
});

test('the package is the one that is pinned', () => {
	assert.equal(typeof sdk.SandboxClient, 'function');
});
