// SPDX-License-Identifier: Apache-2.0
// Times E2B's stock clients, Agentuity's where it is there, and Node by itself, as bench/e2b and bench/code ask. Prints lines of tab-separated fields: what, and nanoseconds.
// usage: bench.mjs create | agentuity | command | files | code ROUNDS GAP_MS [MIB NGINX_URL]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const [what, rounds, gap, mib, nginx] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4]), Number(process.argv[5]), process.argv[6]];

async function time(rows) {
	for (let round = -2; round < rounds; round++) { // the first ones warm up
		for (const [name, run] of Object.entries(rows)) {
			await sleep(gap);
			const start = process.hrtime.bigint();
			const own = await run(); // a row may say itself how long it took
			const took = own ?? process.hrtime.bigint() - start;
			if (round >= 0) console.log(`${name}\t${took}`);
		}
	}
}

async function spawnBash() {
	const child = spawn('/bin/bash', ['-l', '-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] });
	child.stdout.resume();
	child.stderr.resume();
	const [code] = await once(child, 'close');
	if (code !== 0) throw new Error(`bash ended with ${code}`);
}

const kinds = {
	async create() {
		const { Sandbox } = await import('e2b');
		await time({
			'child_process bash -l -c true': spawnBash,
			'create + run + kill': async () => {
				const sandbox = await Sandbox.create();
				await sandbox.commands.run('true');
				await sandbox.kill();
			},
		});
	},
	async agentuity() {
		const { SandboxClient } = await import('@agentuity/server');
		const client = new SandboxClient();
		await time({
			'Agentuity create + execute + destroy': async () => {
				const sandbox = await client.create({});
				const done = await sandbox.execute({ command: ['/bin/bash', '-l', '-c', 'true'] });
				if (done.exitCode !== 0) throw new Error(JSON.stringify(done));
				await sandbox.destroy();
			},
		});
	},
	async command() {
		const { Sandbox } = await import('e2b');
		const sandbox = await Sandbox.create();
		try {
			await time({ 'child_process bash -l -c true': spawnBash, 'commands.run in a living one': async () => { await sandbox.commands.run('true'); } });
		} finally {
			await sandbox.kill();
		}
	},
	async files() {
		const { Sandbox } = await import('e2b');
		const sandbox = await Sandbox.create();
		const data = new Uint8Array(mib << 20).map((_, i) => i * 31 + (i >> 8));
		const blob = new Blob([data]);
		const check = (got) => {
			if (got.byteLength !== data.byteLength || got[12345] !== data[12345] || got.at(-1) !== data.at(-1)) throw new Error('other bytes came back');
		};
		try {
			await time({
				'nginx PUT': async () => {
					const answer = await fetch(`${nginx}/file`, { method: 'PUT', body: blob });
					if (!answer.ok) throw new Error(`nginx: ${answer.status}`);
				},
				'files.write': async () => { await sandbox.files.write('/tmp/file', blob); },
				'nginx GET': async () => check(new Uint8Array(await (await fetch(`${nginx}/file`)).arrayBuffer())),
				'files.read': async () => check(await sandbox.files.read('/tmp/file', { format: 'bytes' })),
			});
		} finally {
			await sandbox.kill();
		}
	},
	async code() {
		const { Sandbox } = await import('@e2b/code-interpreter');
		const check = (told) => {
			if (told.text !== '2' || told.error) throw new Error(JSON.stringify(told));
		};
		const sandbox = await Sandbox.create();
		try {
			check(await sandbox.runCode('1+1'));
			await time({
				'runCode warm': async () => check(await sandbox.runCode('1+1')),
				'first runCode of a new sandbox': async () => {
					const fresh = await Sandbox.create();
					const start = process.hrtime.bigint();
					check(await fresh.runCode('1+1'));
					const took = process.hrtime.bigint() - start;
					await fresh.kill();
					return took;
				},
			});
		} finally {
			await sandbox.kill();
		}
	},
};

await kinds[what]();
