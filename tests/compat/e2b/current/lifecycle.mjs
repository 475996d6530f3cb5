// SPDX-License-Identifier: Apache-2.0
// The newest stock client: time, pauses, snapshots, forks, figures, networks, templates.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NotFoundError, Sandbox, Template } from 'e2b'

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(what, condition) {
  const deadline = Date.now() + 60_000
  for (;;) {
    const value = await condition()
    if (value) return value
    assert.ok(Date.now() < deadline, `waited too long for ${what}`)
    await later(50)
  }
}

async function withSandbox(options, fn) {
  const sandbox = await Sandbox.create('base', options)
  try {
    await fn(sandbox)
  } finally {
    await Sandbox.kill(sandbox.sandboxId)
  }
}

describe('time', () => {
  it('ends a sandbox, whatever runs in it', async () => {
    await withSandbox({ timeoutMs: 600_000 }, async (sandbox) => {
      const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
      await sandbox.setTimeout(1_000)
      await assert.rejects(handle.wait())
      await until('its end', async () => !(await sandbox.isRunning()))
      await assert.rejects(Sandbox.getInfo(sandbox.sandboxId), NotFoundError)
    })
  })

  it('pauses one that is to be paused, and connect goes on with what ran', async () => {
    await withSandbox({ timeoutMs: 600_000, lifecycle: { onTimeout: 'pause' } }, async (sandbox) => {
      const handle = await sandbox.commands.run('i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.05; done', { background: true, timeoutMs: 0 })
      await sandbox.setTimeout(1_000)
      await until('the pause', async () => (await Sandbox.getInfo(sandbox.sandboxId)).state === 'paused')
      assert.equal(await sandbox.isRunning(), false)
      const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000 })
      assert.ok((await again.commands.list()).some((item) => item.pid === handle.pid))
      const before = Number((await again.commands.run('cat /tmp/count')).stdout)
      await until('it to count on', async () => Number((await again.commands.run('cat /tmp/count')).stdout) > before)
    })
  })
})

describe('pausing', () => {
  it('keeps processes, is told once, and lists as paused', async () => {
    const mark = `p${Math.random()}`
    await withSandbox({ metadata: { mark } }, async (sandbox) => {
      await sandbox.files.write('kept', 'yes')
      assert.equal(await sandbox.pause(), true)
      assert.equal(await sandbox.pause(), false)
      const list = await Sandbox.list({ query: { metadata: { mark }, state: ['paused'] } }).nextItems()
      assert.equal(list.length, 1)
      assert.deepEqual(await Sandbox.list({ query: { metadata: { mark }, state: ['running'] } }).nextItems(), [])
      await assert.rejects(sandbox.commands.run('true'))
      const again = await Sandbox.connect(sandbox.sandboxId)
      assert.equal(await again.files.read('kept'), 'yes')
      assert.equal(await again.isRunning(), true)
    })
  })

  it('ends by traffic where that is asked for', async () => {
    await withSandbox({ lifecycle: { onTimeout: 'pause', autoResume: true } }, async (sandbox) => {
      await sandbox.pause()
      assert.equal((await sandbox.commands.run('echo awake')).stdout, 'awake\n')
      assert.equal((await sandbox.getInfo()).state, 'running')
    })
  })
})

describe('snapshots', () => {
  it('start others, survive their source, and go', async () => {
    let snapshot
    await withSandbox({ envs: { A: 'env' } }, async (sandbox) => {
      await sandbox.files.write('inside', 'data')
      snapshot = await sandbox.createSnapshot()
      assert.equal(await sandbox.isRunning(), true)
      const list = await sandbox.listSnapshots().nextItems()
      assert.deepEqual(list.map((item) => item.snapshotId), [snapshot.snapshotId])
    })
    const other = await Sandbox.create(snapshot.snapshotId)
    try {
      assert.equal(await other.files.read('inside'), 'data')
      assert.equal((await other.commands.run('echo $A; id -u')).stdout, 'env\n1000\n')
    } finally {
      await other.kill()
    }
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
    await assert.rejects(Sandbox.create(snapshot.snapshotId), /404/)
  })

  it('are forked', async () => {
    await withSandbox({}, async (sandbox) => {
      await sandbox.files.write('inside', 'one')
      const forks = await sandbox.fork({ count: 2 })
      assert.equal(forks.length, 2)
      for (const fork of forks) {
        const made = fork.sandbox ?? fork
        assert.equal(await made.files.read('inside'), 'one')
        await made.files.write('inside', 'other')
        await made.kill()
      }
      assert.equal(await sandbox.files.read('inside'), 'one')
    })
  })
})

describe('the rest', () => {
  it('tells figures', async () => {
    await withSandbox({}, async (sandbox) => {
      const [figures] = await sandbox.getMetrics()
      assert.ok(figures.memUsed > 0 && figures.memTotal > figures.memUsed && figures.cpuCount >= 1)
      assert.ok(figures.diskTotal > 0)
    })
  })

  it('knows templates by name', async () => {
    assert.equal(await Template.exists('base'), true)
    assert.equal(await Template.exists('code-interpreter-v1'), true)
    assert.equal(await Template.exists('no-such-template'), false)
  })

  it('names hosts, and says what is not offered', async () => {
    await withSandbox({}, async (sandbox) => {
      assert.match(sandbox.getHost(3000), new RegExp(`^3000-${sandbox.sandboxId}\\.127\\.0\\.0\\.1:\\d+$`))
    })
    await assert.rejects(Template.build(Template().fromImage('debian:12').runCmd('true'), 'some-name'), /501|runtime add/)
  })
})
