// SPDX-License-Identifier: Apache-2.0
// An application as the page "Running Code in Sandboxes" shows it: agents with ctx.sandbox, and routes of a web framework (Hono) with
// c.var.sandbox, served by Agentuity's own runtime. web.mjs talks to it.
import { createAgent, createApp, createRouter } from '@agentuity/runtime';
import { s } from '@agentuity/schema';

const codeRunner = createAgent('CodeRunner', {
	schema: { input: s.object({ code: s.string() }) },
	handler: async (ctx, input) => {
		const result = await ctx.sandbox.run({
			command: { exec: ['python3', '-c', input.code] },
			resources: { memory: '256Mi', cpu: '500m' },
		});

		ctx.logger.info('Output', { stdout: result.stdout, exitCode: result.exitCode });
		return { output: result.stdout, exitCode: result.exitCode };
	},
});

const projectBuilder = createAgent('ProjectBuilder', {
	schema: { input: s.object({ main: s.string() }) },
	handler: async (ctx, input) => {
		const sandbox = await ctx.sandbox.create({ resources: { memory: '1Gi' } });

		try {
			await sandbox.writeFiles([{ path: 'main.py', content: Buffer.from(input.main) }]);
			const result = await sandbox.execute({ command: ['python3', 'main.py'] });
			return { id: sandbox.id, exitCode: result.exitCode };
		} finally {
			await sandbox.destroy();
		}
	},
});

const jobRunner = createAgent('JobRunner', {
	schema: { input: s.object({ script: s.string() }) },
	handler: async (ctx, input) => {
		const sandbox = await ctx.sandbox.create({ resources: { memory: '512Mi' } });

		try {
			const job = await sandbox.createJob({ command: ['sh', '-c', input.script] });
			ctx.logger.info('Job started', { jobId: job.jobId });
			let status = await sandbox.getJob(job.jobId);
			while (status.status === 'pending' || status.status === 'running') {
				await new Promise((resolve) => setTimeout(resolve, 50));
				status = await sandbox.getJob(job.jobId);
			}
			return { jobId: job.jobId, status: status.status, exitCode: status.exitCode };
		} finally {
			await sandbox.destroy();
		}
	},
});

const router = createRouter();
for (const [name, agent] of Object.entries({ run: codeRunner, build: projectBuilder, job: jobRunner })) {
	router.post(`/agent/${name}`, async (c) => c.json(await agent.run(await c.req.json())));
}

// The API is identical in routes.
router.post('/route/run', async (c) => {
	const { exec } = await c.req.json();
	const result = await c.var.sandbox.run({ command: { exec } });
	return c.json({ stdout: result.stdout, stderr: result.stderr, exitCode: result.exitCode });
});

router.post('/route/sandboxes', async (c) => {
	const sandbox = await c.var.sandbox.create(await c.req.json());
	return c.json({ id: sandbox.id, status: sandbox.status });
});

// A later request takes the same sandbox up by its id.
router.post('/route/sandboxes/:id/execute', async (c) => {
	const sandbox = await c.var.sandbox.connect(c.req.param('id'));
	const done = await sandbox.execute(await c.req.json());
	return c.json({ status: done.status, exitCode: done.exitCode });
});

router.post('/route/sandboxes/:id/pause', async (c) => {
	await c.var.sandbox.pause(c.req.param('id'));
	return c.json(await c.var.sandbox.get(c.req.param('id')));
});

router.delete('/route/sandboxes/:id', async (c) => {
	await c.var.sandbox.destroy(c.req.param('id'));
	return c.body(null, 204);
});

router.onError((error, c) => c.json({ error: error.message }, 500));

export default await createApp({ router: { path: '/api', router }, analytics: false });
