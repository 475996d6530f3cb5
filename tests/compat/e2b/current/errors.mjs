// SPDX-License-Identifier: Apache-2.0
// The newest stock client: every row of the protocol's tables of errors, as what the client throws.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  AuthenticationError, FileNotFoundError, InvalidArgumentError, NotFoundError, RateLimitError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError,
} from 'e2b'

const absent = '0'.repeat(26)
let sandbox
before(async () => { sandbox = await Sandbox.create('base') })
after(async () => { await sandbox.kill() })

/* A client of the same sandbox that shows another token. */
async function withToken(token, fn) {
  const { sandboxId, sandboxDomain } = await Sandbox.connect(sandbox.sandboxId)
  await fn(new Sandbox({ sandboxId, sandboxDomain, envdVersion: '0.6.13', envdAccessToken: token }))
}

const exactly = (type) => (error) => {
  assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`)
  return true
}

describe('errors of the control plane', () => {
  it('401: AuthenticationError', () => assert.rejects(Sandbox.list({ apiKey: `e2b_${'0'.repeat(40)}` }).nextItems(), exactly(AuthenticationError)))
  it('404: SandboxNotFoundError, or false', async () => {
    for (const call of [() => Sandbox.getInfo(absent), () => Sandbox.connect(absent), () => Sandbox.setTimeout(absent, 1000), () => Sandbox.pause(absent),
                        () => Sandbox.createSnapshot(absent), () => Sandbox.getMetrics(absent)])
      await assert.rejects(call(), exactly(SandboxNotFoundError))
    assert.equal(await Sandbox.kill(absent), false)
    assert.equal(await Sandbox.deleteSnapshot('no-such-snapshot'), false)
  })
  it('404 of create: SandboxError with its status', () => assert.rejects(Sandbox.create('no-such-template'), (error) => {
    assert.ok(exactly(SandboxError)(error) && !(error instanceof NotFoundError))
    assert.match(error.message, /404/)
    return true
  }))
  it('409: false from pause', async () => {
    const other = await Sandbox.create('base')
    try {
      assert.equal(await other.pause(), true)
      assert.equal(await other.pause(), false)
    } finally {
      await other.kill()
    }
  })
  it('400 and others: SandboxError with status and message', () => assert.rejects(
    Sandbox.create('base', { timeoutMs: -1000 }), (error) => exactly(SandboxError)(error) && /400/.test(error.message)))
})

describe('errors of services', () => {
  it('invalid_argument', async () => {
    await assert.rejects(sandbox.commands.run('true', { cwd: '/no/such' }), exactly(InvalidArgumentError))
    await assert.rejects(sandbox.files.list('/etc/passwd'), exactly(InvalidArgumentError))
  })
  it('unauthenticated', async () => {
    await withToken('0'.repeat(90), async (other) => {
      await assert.rejects(other.commands.run('true'), exactly(AuthenticationError))
      await assert.rejects(other.files.list('/'), exactly(AuthenticationError))
      await assert.rejects(other.files.read('/etc/passwd'), exactly(AuthenticationError))
      await assert.rejects(other.files.write('x', 'x'), exactly(AuthenticationError))
    })
    const second = await Sandbox.create('base')
    try {
      await withToken(second.envdAccessToken, (other) => assert.rejects(other.commands.list(), exactly(AuthenticationError)))
    } finally {
      await second.kill()
    }
  })
  it('not_found', async () => {
    await assert.rejects(sandbox.commands.connect(4_000_000_000), exactly(NotFoundError))
    assert.equal(await sandbox.commands.kill(4_000_000_000), false)
    await assert.rejects(sandbox.files.getInfo('/no/such'), exactly(FileNotFoundError))
    await assert.rejects(sandbox.files.rename('/no/such', '/tmp/x'), exactly(FileNotFoundError))
    assert.equal(await sandbox.files.exists('/no/such'), false)
  })
  it('already_exists: false from makeDir', async () => assert.equal(await sandbox.files.makeDir('/tmp'), false))
  it('resource_exhausted: RateLimitError', async () => {
    const call = (path) => fetch(`${process.env.E2B_SANDBOX_URL}/filesystem.Filesystem/CreateWatcher`, {
      method: 'POST', body: JSON.stringify({ path }), headers: {
        'Content-Type': 'application/json', 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983', 'X-Access-Token': sandbox.envdAccessToken } })
    let answer
    for (let i = 0; i < 200 && (!answer || answer.ok); i++) answer = await call('/tmp')
    assert.equal(answer.status, 429)
    assert.equal((await answer.json()).code, 'resource_exhausted')
    await assert.rejects(sandbox.files.watchDir('/tmp', () => {}), exactly(RateLimitError))
  })
  it('deadline_exceeded: TimeoutError', () => assert.rejects(sandbox.commands.run('sleep 100', { timeoutMs: 500 }), exactly(TimeoutError)))
  it('unavailable: the sandbox is gone', async () => {
    const gone = await Sandbox.create('base')
    const handle = await gone.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    await gone.kill()
    await assert.rejects(handle.wait(), exactly(SandboxError))
    await assert.rejects(gone.commands.run('true'), exactly(SandboxNotFoundError))
    await assert.rejects(gone.files.list('/'), exactly(SandboxError))
    await assert.rejects(gone.files.read('/etc/passwd'), exactly(SandboxError))
    assert.equal(await gone.isRunning(), false)
  })
  it('other codes: SandboxError with number and code', async () => {
    const handle = await sandbox.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    await assert.rejects(sandbox.commands.sendStdin(handle.pid, 'x'), exactly(SandboxError))
    await handle.kill()
  })
})
