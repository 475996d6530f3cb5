// SPDX-License-Identifier: Apache-2.0
// The newest stock client: sandboxes and commands.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  AuthenticationError, CommandExitError, InvalidArgumentError, NotFoundError, Sandbox, TimeoutError,
} from 'e2b'

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

describe('sandboxes', () => {
  it('are made, listed by metadata, looked at and killed', async () => {
    const name = `a b&c=${Math.random()}%ü`
    const sandbox = await Sandbox.create('base', { metadata: { [name]: 'x=1&y' }, timeoutMs: 120_000, envs: { A: '1' } })
    try {
      assert.match(sandbox.sandboxId, /^[a-z0-9]+$/)
      assert.equal(await sandbox.isRunning(), true)
      const found = await Sandbox.list({ query: { metadata: { [name]: 'x=1&y' } } }).nextItems()
      assert.deepEqual(found.map((item) => item.sandboxId), [sandbox.sandboxId])
      assert.deepEqual(found[0].metadata, { [name]: 'x=1&y' })
      assert.deepEqual(await Sandbox.list({ query: { metadata: { [name]: 'other' } } }).nextItems(), [])
      const info = await sandbox.getInfo()
      assert.equal(info.state, 'running')
      assert.ok(info.endAt > info.startedAt)
      await sandbox.setTimeout(600_000)
      assert.ok((await sandbox.getInfo()).endAt > info.endAt)
      const same = await Sandbox.connect(sandbox.sandboxId)
      assert.equal((await same.commands.run('echo $A')).stdout, '1\n')
    } finally {
      assert.equal(await sandbox.kill(), true)
    }
    assert.equal(await sandbox.isRunning(), false)
    assert.equal(await sandbox.kill(), false)
    await assert.rejects(Sandbox.connect(sandbox.sandboxId), NotFoundError)
  })

  it('are not for whoever has no key', async () => {
    await assert.rejects(Sandbox.create('base', { apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError)
  })

  it('start from templates that exist', async () => {
    await assert.rejects(Sandbox.create('no-such-template'), /404/)
  })

  it('list page by page', async () => {
    const mark = `page${Math.random()}`
    const made = []
    for (let i = 0; i < 3; i++) made.push(await Sandbox.create('base', { metadata: { mark } }))
    try {
      const list = Sandbox.list({ query: { metadata: { mark } }, limit: 2 })
      const seen = []
      while (list.hasNext) seen.push(...(await list.nextItems()).map((item) => item.sandboxId))
      assert.deepEqual(seen, made.map((sandbox) => sandbox.sandboxId).reverse())
    } finally {
      for (const sandbox of made) await sandbox.kill()
    }
  })
})

describe('commands', () => {
  let sandbox
  before(async () => { sandbox = await Sandbox.create('base', { timeoutMs: 600_000 }) })
  after(async () => { await sandbox.kill() })

  it('tell what they wrote and how they ended', async () => {
    const pieces = []
    const done = await sandbox.commands.run('echo out; echo err >&2; pwd; id -u', { onStdout: (text) => pieces.push(text) })
    assert.equal(done.stdout, 'out\n/home/user\n1000\n')
    assert.equal(done.stderr, 'err\n')
    assert.equal(done.exitCode, 0)
    assert.equal(pieces.join(''), done.stdout)
  })

  it('throw where they fail', async () => {
    await assert.rejects(sandbox.commands.run('echo no >&2; exit 7'), (error) => {
      assert.ok(error instanceof CommandExitError)
      assert.equal(error.exitCode, 7)
      assert.equal(error.stderr, 'no\n')
      return true
    })
  })

  it('run as whom they are told, where they are told, with what they are told', async () => {
    const done = await sandbox.commands.run('id -u; pwd; echo $X', { user: 'root', cwd: '/tmp', envs: { X: 'ü "q"' } })
    assert.equal(done.stdout, '0\n/tmp\nü "q"\n')
    await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such' }), InvalidArgumentError)
    await assert.rejects(sandbox.commands.run('true', { user: 'nobody-here' }))
  })

  it('take input, in the background', async () => {
    const handle = await sandbox.commands.run('read a; echo "got $a"; cat', { background: true, stdin: true })
    assert.ok((await sandbox.commands.list()).some((item) => item.pid === handle.pid && item.cmd === '/bin/bash'))
    await sandbox.commands.sendStdin(handle.pid, 'one\n')
    await sandbox.commands.sendStdin(handle.pid, 'two\n')
    await sandbox.commands.closeStdin(handle.pid)
    const done = await handle.wait()
    assert.equal(done.stdout, 'got one\ntwo\n')
  })

  it('are killed once', async () => {
    const handle = await sandbox.commands.run('sleep 1000', { background: true })
    assert.equal(await sandbox.commands.kill(handle.pid), true)
    assert.equal((await sandbox.commands.list()).some((item) => item.pid === handle.pid), false)
    assert.equal(await sandbox.commands.kill(handle.pid), false)
    await assert.rejects(handle.wait(), CommandExitError)
    assert.equal(await sandbox.commands.kill(424242), false)
  })

  it('are left and found again', async () => {
    const handle = await sandbox.commands.run('while [ ! -e /tmp/go ]; do sleep 0.05; done; echo behind', { background: true })
    await handle.disconnect()
    const again = await sandbox.commands.connect(handle.pid)
    await sandbox.commands.run('touch /tmp/go')
    assert.equal((await again.wait()).stdout, 'behind\n')
    await assert.rejects(sandbox.commands.connect(424242), NotFoundError)
  })

  it('end with their time', async () => {
    await assert.rejects(sandbox.commands.run('echo $$ > /tmp/late; sleep 1000', { timeoutMs: 1500 }), TimeoutError)
    await until('the command to be gone', async () =>
      (await sandbox.commands.run('kill -0 $(cat /tmp/late) 2>/dev/null && echo there || echo gone', { user: 'root' })).stdout === 'gone\n')
  })

  it('write much', async () => {
    const done = await sandbox.commands.run('head -c 3000000 /dev/zero | tr "\\0" x; head -c 1000000 /dev/zero | tr "\\0" y >&2')
    assert.equal(done.stdout.length, 3_000_000)
    assert.equal(done.stderr.length, 1_000_000)
  })
})
