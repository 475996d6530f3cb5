// SPDX-License-Identifier: Apache-2.0
// Times the stock client against a server, as bench/server asks. Prints lines of tab-separated fields: what, and nanoseconds.
// usage: sdk.mjs RUNTIME ROUNDS GAP_MS
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxClient } from '@agentuity/server';

const [runtime, rounds, gap] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const client = new SandboxClient();
const sandbox = await client.create({ runtime });

function check(result) {
	if (result.exitCode !== 0) throw new Error(`it did not end well: ${JSON.stringify(result)}`);
}

const rows = {
	'child_process.spawn': async () => {
		const [code] = await once(spawn('/bin/true', { stdio: ['ignore', 'pipe', 'pipe'] }), 'close');
		check({ exitCode: code });
	},
	'SDK run()': async () => check(await client.run({ runtime, command: { exec: ['/bin/true'] } })),
	'SDK execute()': async () => check(await sandbox.execute({ command: ['/bin/true'] })),
};

try {
	for (let round = -3; round < rounds; round++) {
		for (const [name, run] of Object.entries(rows)) {
			await sleep(gap);
			const start = process.hrtime.bigint();
			await run();
			if (round >= 0) console.log(`round\t${name}\t${process.hrtime.bigint() - start}`); // the first ones warm up
		}
	}
} finally {
	await sandbox.destroy();
}
