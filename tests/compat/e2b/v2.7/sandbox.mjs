// SPDX-License-Identifier: Apache-2.0
// The oldest stock client that can be pointed elsewhere: create, run, write, read, connect, kill.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { CommandExitError, Sandbox } from 'e2b'

it('makes, uses, finds and ends a sandbox', async () => {
  const sandbox = await Sandbox.create('base', { envs: { A: '1' } })
  try {
    assert.equal((await sandbox.commands.run('echo $A')).stdout, '1\n')
    await assert.rejects(sandbox.commands.run('exit 2'), CommandExitError)
    await sandbox.files.write('a/b.txt', 'text')
    assert.equal(await sandbox.files.read('a/b.txt'), 'text')
    assert.deepEqual((await sandbox.files.list('a')).map((item) => item.name), ['b.txt'])
    assert.equal(await sandbox.isRunning(), true)
    const same = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await same.commands.run('cat a/b.txt')).stdout, 'text')
    await same.betaPause()
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal(await again.files.read('a/b.txt'), 'text')
  } finally {
    await sandbox.kill()
  }
  assert.equal(await sandbox.isRunning(), false)
})
