// SPDX-License-Identifier: Apache-2.0
// The newest stock client: files, watching, terminals.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { AuthenticationError, FileNotFoundError, FileType, FilesystemEventType, InvalidArgumentError, Sandbox } from 'e2b'

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

let sandbox
before(async () => { sandbox = await Sandbox.create('base', { timeoutMs: 600_000 }) })
after(async () => { await sandbox.kill() })

describe('files', () => {
  it('are written and read, as text, bytes, blob and stream', async () => {
    const told = await sandbox.files.write('dir/a "b" ü.txt', 'hello ü')
    assert.equal(told.path, '/home/user/dir/a "b" ü.txt')
    assert.equal(told.name, 'a "b" ü.txt')
    assert.equal(await sandbox.files.read('dir/a "b" ü.txt'), 'hello ü')
    assert.deepEqual(Buffer.from(await sandbox.files.read(told.path, { format: 'bytes' })).toString(), 'hello ü')
    assert.equal(await (await sandbox.files.read(told.path, { format: 'blob' })).text(), 'hello ü')
    let text = ''
    for await (const piece of await sandbox.files.read(told.path, { format: 'stream' })) text += Buffer.from(piece).toString()
    assert.equal(text, 'hello ü')
    assert.equal((await sandbox.commands.run('stat -c %U:%u:%a "dir/a \\"b\\" ü.txt" | cut -d: -f2-')).stdout, '1000:644\n')
  })

  it('may be empty, many, large and compressed', async () => {
    await sandbox.files.write('empty', '')
    assert.equal(await sandbox.files.read('empty'), '')
    const many = await sandbox.files.write([{ path: '/tmp/m/1', data: 'one' }, { path: 'm2', data: new Uint8Array([0, 255, 13, 10]).buffer }])
    assert.deepEqual(many.map((item) => item.path), ['/tmp/m/1', '/home/user/m2'])
    assert.deepEqual([...await sandbox.files.read('m2', { format: 'bytes' })], [0, 255, 13, 10])
    const large = Buffer.alloc(5_000_000, 'abcdefg\r\n--')
    for (const options of [{}, { useOctetStream: true }, { gzip: true }]) {
      await sandbox.files.write('/tmp/large', new Blob([large]), options)
      assert.ok(large.equals(Buffer.from(await sandbox.files.read('/tmp/large', { format: 'bytes' }))), JSON.stringify(options))
    }
  })

  it('say what is wrong', async () => {
    await assert.rejects(sandbox.files.read('/no/such'), FileNotFoundError)
    await assert.rejects(sandbox.files.read('/tmp'), InvalidArgumentError)
    await assert.rejects(sandbox.files.write('/tmp', 'x'), InvalidArgumentError)
    await assert.rejects(sandbox.files.write('/tmp/x', 'x', { user: 'nobody-here' }), AuthenticationError)
    await assert.rejects(sandbox.files.list('/no/such'), FileNotFoundError)
    await assert.rejects(sandbox.files.list('/etc/passwd'), InvalidArgumentError)
  })

  it('are listed, moved, made, removed and looked at', async () => {
    assert.equal(await sandbox.files.makeDir('tree/deep'), true)
    assert.equal(await sandbox.files.makeDir('tree/deep'), false)
    await sandbox.files.write('tree/deep/file', '12345')
    await sandbox.commands.run('ln -s deep tree/link')
    const flat = await sandbox.files.list('tree')
    assert.deepEqual(flat.map((item) => [item.name, item.type]), [['deep', FileType.DIR], ['link', FileType.DIR]])
    const deep = await sandbox.files.list('tree', { depth: 5 })
    assert.deepEqual(deep.map((item) => item.path),
      ['/home/user/tree/deep', '/home/user/tree/deep/file', '/home/user/tree/link'])
    const info = await sandbox.files.getInfo('tree/deep/file')
    assert.equal(info.size, 5)
    assert.equal(info.mode, 0o644)
    assert.equal(info.permissions, '-rw-r--r--')
    assert.equal(info.owner, 'user')
    assert.ok(Math.abs(info.modifiedTime - Date.now()) < 3_600_000)
    assert.equal((await sandbox.files.getInfo('tree/link')).symlinkTarget, '/home/user/tree/deep')
    const moved = await sandbox.files.rename('tree/deep/file', 'elsewhere/new')
    assert.equal(moved.path, '/home/user/elsewhere/new')
    assert.equal(await sandbox.files.exists('tree/deep/file'), false)
    assert.equal(await sandbox.files.exists('elsewhere/new'), true)
    await sandbox.files.remove('elsewhere')
    assert.equal(await sandbox.files.exists('elsewhere'), false)
    await assert.rejects(sandbox.files.rename('no-such', 'x'), FileNotFoundError)
  })

  it('are reached by signed URLs', async () => {
    await sandbox.files.write('signed.txt', 'by a URL')
    const down = await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: 120 })
    const got = await fetch(down)
    assert.equal(got.status, 200)
    assert.equal(await got.text(), 'by a URL')
    assert.equal((await fetch(down.replace('signed.txt', 'other.txt'))).status, 401)
    const form = new FormData()
    form.append('file', new Blob(['sent']), 'ignored')
    const up = await fetch(await sandbox.uploadUrl('uploaded.txt'), { method: 'POST', body: form })
    assert.equal(up.status, 200)
    assert.equal(await sandbox.files.read('uploaded.txt'), 'sent')
  })
})

describe('watching', () => {
  for (const recursive of [false, true]) {
    it(`tells what happens${recursive ? ' below too' : ''}`, async () => {
      const top = `watched-${recursive}`
      await sandbox.files.makeDir(`${top}/sub`)
      const seen = []
      const handle = await sandbox.files.watchDir(top, (event) => { seen.push(`${event.type} ${event.name}`) },
        { recursive, timeoutMs: 0, includeEntry: true })
      await sandbox.files.write(`${top}/a`, '1')
      await until('the file', () => seen.includes(`${FilesystemEventType.WRITE} a`))
      assert.deepEqual(seen, ['create a', 'write a']) // nothing of how it is written
      await sandbox.commands.run(`echo more >> ${top}/a; chmod 600 ${top}/a; mv ${top}/a ${top}/b; rm ${top}/b; echo x > ${top}/sub/x; touch ${top}/last`)
      await until('the last event', () => seen.includes(`${FilesystemEventType.CREATE} last`))
      for (const wanted of ['write a', 'chmod a', 'rename a', 'remove b'])
        assert.ok(seen.includes(wanted), `${wanted} in ${seen}`)
      assert.equal(seen.includes('create sub/x'), recursive, `${seen}`)
      await handle.stop()
    })
  }
  it('needs a directory', async () => {
    await assert.rejects(sandbox.files.watchDir('/no/such', () => {}), FileNotFoundError)
    await assert.rejects(sandbox.files.watchDir('/etc/passwd', () => {}), InvalidArgumentError)
  })
})

describe('terminals', () => {
  it('show, take input, change size, and are left and found again', async () => {
    let shown = ''
    const decoder = new TextDecoder()
    const show = (bytes) => { shown += decoder.decode(bytes, { stream: true }) }
    const pty = await sandbox.pty.create({ cols: 80, rows: 24, onData: show, timeoutMs: 0, envs: { PS1: '$ ' } })
    const type = (text) => sandbox.pty.sendInput(pty.pid, new TextEncoder().encode(text))
    await type('stty size; tty; echo "<$TERM>"\n')
    await until('the size', () => /24 80\r\n\/dev\/pts\/\d+\r\n<xterm/.test(shown))
    await sandbox.pty.resize(pty.pid, { cols: 132, rows: 50 })
    await type('stty size\n')
    await until('the new size', () => shown.includes('50 132'))
    let second = ''
    const other = await sandbox.pty.connect(pty.pid, { onData: (bytes) => { second += Buffer.from(bytes).toString() } })
    await type('echo both-$((40+2))\n')
    await until('both clients', () => shown.includes('both-42') && second.includes('both-42'))
    await other.disconnect()
    // A full-screen program: the alternate screen, the cursor, and back.
    await type("printf '\\033[?1049h\\033[2J\\033[10;20Hmiddle\\033[?1049l'\n")
    await until('the screen', () => shown.includes('\x1b[?1049h\x1b[2J\x1b[10;20Hmiddle\x1b[?1049l'))
    await type('exit 3\n')
    await assert.rejects(pty.wait(), /exit status 3/)
    assert.equal(await sandbox.pty.kill(pty.pid), false)
  })
})

describe('metadata of files', () => {
  it('is kept with them, told, and replaced', async () => {
    const told = await sandbox.files.write('noted', 'x', { metadata: { Kind: 'a b', other: '1=2' } })
    assert.deepEqual(told.metadata, { kind: 'a b', other: '1=2' })
    assert.deepEqual((await sandbox.files.getInfo('noted')).metadata, { kind: 'a b', other: '1=2' })
    assert.deepEqual((await sandbox.files.list('/home/user')).find((item) => item.name === 'noted').metadata, { kind: 'a b', other: '1=2' })
    await sandbox.files.write('noted', 'y')
    assert.equal((await sandbox.files.getInfo('noted')).metadata?.kind, undefined)
    await assert.rejects(sandbox.files.write('noted', 'z', { metadata: { big: 'x'.repeat(5000) } }), InvalidArgumentError)
  })
})
