// SPDX-License-Identifier: Apache-2.0
// The newest stock client: a server that is started again in the middle of a command. RESTART is a file that tests/compat/e2b/run waits for.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { it } from 'node:test'
import { Sandbox } from 'e2b'

async function until(what, condition) {
  const deadline = Date.now() + 60_000
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `waited too long for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

it('goes on with a command after a restart, and no byte is lost', async () => {
  const sandbox = await Sandbox.create('base', { timeoutMs: 600_000 })
  try {
    let before = ''
    const first = await sandbox.commands.run('seq 1 2000; until [ -e go ]; do sleep 0.05; done; seq 2001 4000', {
      background: true, timeoutMs: 0, onStdout: (text) => { before += text } })
    const left = first.wait().catch(() => {})
    await until('its first half', () => before.endsWith('2000\n'))
    writeFileSync(process.env.RESTART, '')
    await until('the restart', () => !existsSync(process.env.RESTART))
    await left
    let after = ''
    const again = await sandbox.commands.connect(first.pid, { timeoutMs: 0, onStdout: (text) => { after += text } })
    await sandbox.files.write('go', '')
    const done = await again.wait()
    assert.equal(done.exitCode, 0)
    assert.equal(after, Array.from({ length: 4000 }, (_, i) => `${i + 1}\n`).join(''))
    assert.equal(done.stdout, after)
    assert.equal((await sandbox.commands.run('echo fine')).stdout, 'fine\n')
  } finally {
    await sandbox.kill()
  }
})
