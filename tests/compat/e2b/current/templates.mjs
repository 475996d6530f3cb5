// SPDX-License-Identifier: Apache-2.0
// The newest stock client: building templates by steps, their cache, logs, failures, tags, and sandboxes of them.
import assert from 'node:assert/strict'
import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { BuildError, Sandbox, Template, TemplateError, waitForFile } from 'e2b'

let context
before(() => {
  context = mkdtempSync(join(tmpdir(), 'burrow-template-'))
  mkdirSync(join(context, 'app/deep'), { recursive: true })
  writeFileSync(join(context, 'app/main.txt'), 'main\n')
  writeFileSync(join(context, 'app/deep/leaf.txt'), 'leaf\n')
  writeFileSync(join(context, 'app/.hidden'), 'hidden\n')
  symlinkSync('main.txt', join(context, 'app/link'))
  writeFileSync(join(context, 'one.txt'), 'one\n')
  writeFileSync(join(context, 'two.txt'), 'two\n')
})
after(() => rmSync(context, { recursive: true, force: true }))

const from = () => Template({ fileContextPath: context }).fromTemplate('base')

async function build(template, name, options = {}) {
  const logs = []
  const info = await Template.build(template, name, { onBuildLogs: (entry) => logs.push(entry), ...options })
  return { info, logs, text: logs.map((entry) => entry.message).join('\n') }
}

async function inside(name, fn, options) {
  const sandbox = await Sandbox.create(name, options)
  try {
    return await fn(sandbox, async (command, more) => (await sandbox.commands.run(command, more)).stdout.trim())
  } finally {
    await sandbox.kill()
  }
}

describe('templates', () => {
  it('are built by steps, and sandboxes start from them', async () => {
    const template = from()
      .runCmd('echo to-stdout; echo to-stderr >&2; id -un > /home/user/who; pwd > /home/user/where')
      .setEnvs({ COLOUR: 'blue', SPACE: 'a b' })
      .setWorkdir('/srv/work')
      .runCmd('printf "%s/%s/%s" "$COLOUR" "$SPACE" "$PWD" > told')
      .runCmd('id -u > /root/uid', { user: 'root' })
      .copy('app', 'app')
      .copy('one.txt', '/srv/renamed.txt', { user: 'root', mode: 0o600 })
      .copy(['one.txt', 'two.txt'], '/srv/both/')
      .copy('*.txt', '/srv/all')
      .makeDir('made')
      .remove('/srv/both/one.txt', { force: true })
    const { info, logs, text } = await build(template, 'built-by-steps', { cpuCount: 1, memoryMB: 512 })
    assert.equal(info.name, 'built-by-steps')
    assert.deepEqual(info.tags, ['default'])
    assert.match(text, /\[stdout\]: to-stdout/)
    assert.match(text, /\[stderr\]: to-stderr/)
    assert.match(text, /RUN echo to-stdout/)
    assert.ok(logs.every((entry) => ['debug', 'info', 'warn', 'error'].includes(entry.level)), 'levels')
    assert.ok(await Template.exists('built-by-steps'))
    await inside('built-by-steps', async (sandbox, run) => {
      assert.equal(await run('echo $COLOUR; echo "$SPACE"; pwd'), 'blue\na b\n/srv/work')
      assert.equal(await run('cat told'), 'blue/a b//srv/work')
      assert.equal(await run('cat /home/user/where; stat -c %u /home/user/who'), '/home/user\n1000')
      assert.equal(await run('cat /root/uid', { user: 'root' }), '0')
      assert.equal(await run('cat app/main.txt app/deep/leaf.txt app/.hidden app/link; stat -c %u app/main.txt'), 'main\nleaf\nhidden\nmain\n1000')
      assert.equal(await run('cat /srv/renamed.txt; stat -c "%u %a" /srv/renamed.txt', { user: 'root' }), 'one\n0 600')
      assert.equal(await run('ls /srv/both; ls /srv/all; ls -d made'), 'two.txt\none.txt\ntwo.txt\nmade')
      assert.equal(await run('ls -a / | grep burrow || true'), '')
      const told = await Sandbox.getInfo(sandbox.sandboxId)
      assert.equal(told.cpuCount, 1)
      assert.equal(told.memoryMB, 512)
    })
  })

  it('say whose files are read and written, and where', async () => {
    await build(from().setUser('root').setWorkdir('/srv/mine').runCmd('id -u > note'), 'of-root')
    await inside('of-root', async (sandbox, run) => {
      assert.equal(await run('id -u; pwd'), '0\n/srv/mine')
      assert.equal((await sandbox.files.write('~/mine', 'x')).path, '/root/mine')
      assert.deepEqual((await sandbox.files.writeFiles([{ path: '/root/one', data: '1' }, { path: '/root/two', data: '2' }])).length, 2)
      assert.equal(await run('stat -c %u /root/mine /root/two'), '0\n0')
      assert.equal(await sandbox.files.read('/srv/mine/note'), '0\n')
      assert.deepEqual((await sandbox.files.list('')).map((entry) => entry.name), ['note'])
      assert.equal((await sandbox.files.getInfo('mine')).path, '/root/mine')
      assert.equal(await sandbox.files.makeDir('made'), true)
      assert.equal(await run('stat -c %u /root/made'), '0')
      assert.equal((await sandbox.files.rename('made', 'moved')).path, '/root/moved')
      const seen = []
      const watch = await sandbox.files.watchDir('moved', (event) => seen.push(event.name))
      await sandbox.files.write('moved/new', 'x')
      for (let i = 0; i < 200 && !seen.includes('new'); i++) await new Promise((resolve) => setTimeout(resolve, 50))
      assert.ok(seen.includes('new'))
      await watch.stop()
      const answer = await fetch(await sandbox.downloadUrl('/root/mine'))
      assert.equal(await answer.text(), 'x')
      assert.equal((await sandbox.files.write('own', 'x', { user: 'user' })).path, '/home/user/own')
      await assert.rejects(sandbox.files.read('/root/mine', { user: 'user' }))
    })
  })

  it('are built in sandboxes that no list shows', async () => {
    let listed
    await Template.build(from().runCmd('echo now-it-runs; sleep 1').skipCache(), 'unlisted', {
      onBuildLogs: (entry) => {
        if (entry.message.includes('[stdout]: now-it-runs')) listed ??= Sandbox.list().nextItems()
      },
    })
    assert.deepEqual((await listed).map((one) => one.templateId), [])
  })

  it('are built once: what is the same costs nothing, and may be made again all the same', async () => {
    const mark = (template) => template.runCmd('cat /proc/sys/kernel/random/uuid > /home/user/uuid').runCmd('echo second')
    const uuid = () => inside('built-once', (_, run) => run('cat /home/user/uuid'))
    await build(mark(from()), 'built-once')
    const first = await uuid()
    const again = await build(mark(from()), 'built-once')
    assert.match(again.text, /CACHED \[1\/2\]/)
    assert.match(again.text, /CACHED \[2\/2\]/)
    assert.equal(await uuid(), first)
    const longer = await build(mark(from()).runCmd('echo third'), 'built-once')
    assert.match(longer.text, /CACHED \[2\/3\]/)
    assert.match(longer.text, /\[stdout\]: third/)
    assert.equal(await uuid(), first)
    const forced = await build(mark(from()), 'built-once', { skipCache: true })
    assert.doesNotMatch(forced.text, /CACHED/)
    const second = await uuid()
    assert.notEqual(second, first)
    const partly = await build(from().runCmd('cat /proc/sys/kernel/random/uuid > /home/user/uuid').skipCache().runCmd('echo second'), 'built-once')
    assert.match(partly.text, /CACHED \[1\/2\]/)
    assert.doesNotMatch(partly.text, /CACHED \[2\/2\]/)
    assert.equal(await uuid(), second)
  })

  it('upload files again only when they have changed', async () => {
    writeFileSync(join(context, 'changing'), `${Math.random()}`)
    const template = () => from().copy('changing', '/srv/changing')
    assert.match((await build(template(), 'with-files')).text, /Uploaded 'changing'/)
    assert.match((await build(template(), 'with-files')).text, /Skipping upload of 'changing'/)
    writeFileSync(join(context, 'changing'), 'new')
    assert.match((await build(template(), 'with-files')).text, /Uploaded 'changing'/)
    await inside('with-files', async (_, run) => assert.equal(await run('cat /srv/changing'), 'new'))
  })

  it('name the step that failed', async () => {
    const logs = []
    const template = from().runCmd('true').runCmd('echo before; exit 3').runCmd('echo never')
    await assert.rejects(Template.build(template, 'failing', { onBuildLogs: (entry) => logs.push(entry) }), (error) => {
      assert.ok(error instanceof BuildError)
      assert.match(error.message, /step 2: the command ended with exit code 3/)
      assert.match(error.stack, /templates\.mjs/)
      return true
    })
    assert.ok(logs.some((entry) => entry.level === 'error' && /exit code 3/.test(entry.message)))
    assert.ok(!logs.some((entry) => /never/.test(entry.message)))
    assert.equal(await Template.exists('failing'), false)
    await assert.rejects(Template.build(Template().fromTemplate('no-such-template'), 'failing'), /not found/)
    await assert.rejects(Template.build(Template().fromImage('registry.example/no-such:1'), 'failing'), /runtime add/)
    await assert.rejects(Template.build(from(), 'Not A Name'), BuildError)
    await assert.rejects(Template.build(Template().fromImage('debian:12', { username: 'u', password: 'p' }), 'failing'), /credentials/)
  })

  it('stand on each other, with user, directory and variables', async () => {
    await build(from().setEnvs({ BELOW: '1', BOTH: 'below' }).setUser('root').setWorkdir('/srv').runCmd('echo below > file'), 'below')
    await build(Template().fromTemplate('below').setEnvs({ BOTH: 'above' }).runCmd('echo $BELOW$BOTH > more'), 'above')
    await inside('above', async (_, run) => {
      assert.equal(await run('id -u; pwd; cat file more; echo $BELOW $BOTH'), '0\n/srv\nbelow\n1above\n1 above')
      assert.equal(await run('id -u', { user: 'user' }), '1000')
    })
  })

  it('have a command that runs in each of their sandboxes', async () => {
    const start = 'echo "started $COLOUR" > /tmp/started; sleep 1000'
    await build(from().setEnvs({ COLOUR: 'red' }).setStartCmd(start, waitForFile('/tmp/started')), 'serving')
    await inside('serving', async (sandbox, run) => {
      assert.equal(await run('cat /tmp/started'), 'started red')
      assert.ok((await sandbox.commands.list()).some((item) => item.args?.join(' ').includes('sleep 1000') || item.cmd?.includes('sleep 1000')))
    })
    await assert.rejects(build(from().setStartCmd('exit 7', waitForFile('/never')), 'serving-not'), /finalize: the start command ended with exit code 7/)
  })

  it('are built in the background, and tell how far they are', async () => {
    const info = await Template.buildInBackground(from().runCmd('echo one').runCmd('echo two'), 'background')
    let status
    const deadline = Date.now() + 120_000
    do {
      status = await Template.getBuildStatus(info, { logsOffset: 0 })
      assert.ok(['building', 'waiting', 'ready'].includes(status.status), status.status)
      await new Promise((resolve) => setTimeout(resolve, 50))
    } while (status.status !== 'ready' && Date.now() < deadline)
    assert.equal(status.status, 'ready')
    const all = status.logEntries.length
    assert.ok(all >= 4)
    assert.equal((await Template.getBuildStatus(info, { logsOffset: all - 1 })).logEntries.length, 1)
    assert.equal((await Template.getBuildStatus(info, { logsOffset: all })).logEntries.length, 0)
    await assert.rejects(Template.getBuildStatus({ ...info, buildId: 'nothing' }), BuildError)
  })

  it('have tags', async () => {
    const first = await build(from().runCmd('echo 1 > /home/user/v'), 'tagged:v1', { tags: ['stable'] })
    assert.deepEqual(first.info.tags, ['v1', 'stable'])
    const second = await build(from().runCmd('echo 2 > /home/user/v'), 'tagged', { tags: ['v2'] })
    const version = (name) => inside(name, (_, run) => run('cat v'))
    assert.equal(await version('tagged:stable'), '1')
    assert.equal(await version('tagged:v2'), '2')
    const assigned = await Template.assignTags('tagged:v2', ['stable', 'production'])
    assert.equal(assigned.buildId, second.info.buildId)
    assert.equal(await version('tagged:stable'), '2')
    const tags = await Template.getTags('tagged')
    assert.deepEqual(tags.map((item) => item.tag).sort(), ['production', 'stable', 'v1', 'v2'])
    assert.equal(tags.find((item) => item.tag === 'v1').buildId, first.info.buildId)
    assert.ok(tags.every((item) => item.createdAt instanceof Date && !isNaN(item.createdAt)))
    await Template.removeTags('tagged', 'stable')
    assert.deepEqual((await Template.getTags('tagged')).map((item) => item.tag).sort(), ['production', 'v1', 'v2'])
    await assert.rejects(Template.removeTags('tagged', 'nothing'), TemplateError)
    await assert.rejects(Template.getTags('nothing'), TemplateError)
    await assert.rejects(Template.assignTags('tagged:nothing', 'x'), TemplateError)
    await build(from().runCmd('echo 3 > /home/user/v'), 'tagged')
    assert.equal(await version('tagged'), '3')
    await build(from().runCmd('echo 4 > /home/user/v'), 'tagged:v4')
    assert.equal(await version('tagged'), '3')
  })

  it('have no step at all, or a Dockerfile', async () => {
    await build(from(), 'the-same')
    await inside('the-same', async (_, run) => assert.equal(await run('id -un 2>/dev/null || id -u; pwd').then((text) => text.split('\n')[1]), '/home/user'))
    const dockerfile = 'FROM e2bdev/base\nENV A=1\nWORKDIR /opt/x\nRUN echo $A > file\nUSER root\n'
    await build(Template({ fileContextPath: context }).fromDockerfile(dockerfile), 'of-dockerfile')
    await inside('of-dockerfile', async (_, run) => assert.equal(await run('id -u; pwd; cat file; echo $A'), '0\n/opt/x\n1\n1'))
  })

  it('are listed, shown, published and removed', async () => {
    await build(from().runCmd('true'), 'to-remove', { tags: ['a', 'b'] })
    const call = async (method, path, body) => {
      const answer = await fetch(`${process.env.E2B_API_URL}${path}`, {
        method, headers: { 'X-API-Key': process.env.E2B_API_KEY, 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) })
      return { status: answer.status, json: answer.status === 204 ? null : await answer.json() }
    }
    const list = (await call('GET', '/templates')).json
    const one = list.find((item) => item.templateID === 'to-remove')
    assert.equal(one.buildStatus, 'ready')
    assert.deepEqual(one.names, ['to-remove'])
    assert.ok(!list.some((item) => item.templateID.startsWith('snapshot-')))
    assert.equal((await call('GET', '/templates/to-remove')).json.builds[0].status, 'ready')
    assert.equal((await call('PATCH', '/v2/templates/to-remove', { public: true })).status, 200)
    assert.equal((await call('GET', '/templates/to-remove')).json.public, true)
    assert.equal((await call('DELETE', '/templates/to-remove')).status, 204)
    assert.equal((await call('DELETE', '/templates/to-remove')).status, 404)
    assert.equal((await call('GET', '/templates/to-remove')).status, 404)
    assert.equal(await Template.exists('to-remove'), false)
    await assert.rejects(Sandbox.create('to-remove'), /404/)
  })
})
