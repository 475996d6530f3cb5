// SPDX-License-Identifier: Apache-2.0
// TypeScript and modules in cells, run by real releases of Node: one that translates, one that only takes types out, and that with the package.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { Sandbox } from '@e2b/code-interpreter'

const PLAIN = [ // a cell, and its value as text
  ['const x: number = 1; x + 1', '2'],
  ["interface Named { name: string; age?: number }\nconst who: Named = { name: 'Bo' }\nwho.name", 'Bo'],
  ['async function later(): Promise<number> { await new Promise((r) => setTimeout(r, 5)); return 7 }\nawait later()', '7'],
  ["import { basename as base, type ParsedPath } from 'node:path'\nimport * as path from 'path'\nimport os from 'os'\nbase(path.join('a', 'b')) + typeof os.cpus", 'bfunction'],
  ["import fs, {\n  existsSync,\n} from 'fs'; import util from 'util'; existsSync('/') && typeof fs.statSync + typeof util.inspect", 'functionfunction'],
  ['typeof fs.readFileSync', 'function'], // what an earlier cell has imported
  ["import later2 from 'node:os'", undefined],
  ['typeof later2.cpus', 'function'], // what it has imported and not used itself
  ["const { join } = await import('node:path'); join('a', 'b')", 'a/b'],
  ["await import('./own.mjs').then((own) => own.answer)", '42'],
  ["import data from './data.json' with { type: 'json' }\ndata.key", 'value'],
  ['const same = <T,>(one: T): T => one; same<string>("generic")', 'generic'],
  ['const map = { a: 1 } satisfies Record<string, number>; map.a as unknown as string', '1'],
  ['export const told: number = 5\nexport function twice(n: number): number { return n * 2 }\nexport {}\ntwice(told)', '10'],
  ['export default 42', '42'],
  ['const once = 1; once', '1'],
  ['const once = 2; once', '2'], // a cell that is run again
  // Texts that look like modules stay what they are.
  ["const source = `\nimport a from 'b'\nexport const c = import('d') // ${`import('e')`}\n`\nsource", "\nimport a from 'b'\nexport const c = import('d') // import('e')\n"],
  ["'import(1)' + \"\\nimport x from 'y'\" // import z from 'z'", "import(1)\nimport x from 'y'"],
  ["/import\\('x'\\)/.test(\"import('x')\")", 'true'],
]
const TRANSLATED = [
  ['enum Color { Red, Green = 5, Blue }\nColor.Blue', '6'],
  ['Color[5]', 'Green'],
  ['class Person { constructor(private name: string) {} greet(): string { return `hi ${this.name}` } }\nnew Person("Bo").greet()', 'hi Bo'],
  ['namespace Space { export const v = 3 }\nSpace.v', '3'],
]

const write = async (sandbox, path, from) => sandbox.files.write(path, (await readFile(from)).buffer, { user: 'root' })

async function start(release) {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 })
  const binary = `node_modules/${release}-${process.arch}/bin/node`
  await write(sandbox, '/usr/local/bin/node', binary)
  for (const [, library] of execFileSync('ldd', [binary], { encoding: 'utf8' }).matchAll(/=> (\/\S+)/g))
    if (!(await sandbox.files.exists(library))) await write(sandbox, library, library)
  await sandbox.commands.run('chmod 755 /usr/local/bin/node', { user: 'root' })
  await sandbox.files.write('own.mjs', 'export const answer = 42')
  await sandbox.files.write('data.json', '{"key": "value"}')
  return sandbox
}

async function check(sandbox, cells) {
  for (const [code, value] of cells) {
    const told = await sandbox.runCode(code, { language: 'ts' })
    assert.equal(told.error, undefined, code)
    assert.equal(told.text, value, code)
    assert.deepEqual(told.logs, { stdout: [], stderr: [] }, code) // no warnings of Node's own
  }
}

describe('TypeScript in Node 24', () => {
  let sandbox
  before(async () => { sandbox = await start('node24') })
  after(async () => { await sandbox.kill() })

  it('has types, modules and all that is translated', async () => {
    await check(sandbox, PLAIN)
    await check(sandbox, TRANSLATED)
  })

  it('tells what is wrong, and where', async () => {
    const wrong = await sandbox.runCode('const x: = 1', { language: 'ts' })
    assert.equal(wrong.error.name, 'SyntaxError')
    assert.match(wrong.error.traceback, /const x: = 1/)
    assert.doesNotMatch(wrong.error.traceback, /worker|node:internal/)
    const thrown = await sandbox.runCode("function f(): never { throw new RangeError('bad') }\nf()", { language: 'ts' })
    assert.deepEqual([thrown.error.name, thrown.error.value], ['RangeError', 'bad'])
    assert.equal((await sandbox.runCode('throw 5', { language: 'ts' })).error.value, '5')
    const missing = await sandbox.runCode("import nothing from 'no-such-package'", { language: 'js' })
    assert.match(missing.error.value, /no-such-package/)
    assert.doesNotMatch(missing.error.traceback, /node:internal/)
  })

  it('has contexts of its own, and JavaScript beside them', async () => {
    const context = await sandbox.createCodeContext({ language: 'typescript', cwd: '/tmp' })
    assert.equal((await sandbox.runCode('let kept: string = process.cwd(); kept', { context })).text, '/tmp')
    assert.equal((await sandbox.runCode('kept', { context })).text, '/tmp')
    assert.equal((await sandbox.runCode('kept', { language: 'ts' })).error.name, 'ReferenceError')
    assert.equal((await sandbox.runCode("import { join } from 'path'\n[join('a', 'b')]", { language: 'js' })).text, "[ 'a/b' ]")
    assert.equal((await sandbox.runCode('const typed: number = 1', { language: 'js' })).error.name, 'SyntaxError')
  })
})

describe('TypeScript in Node 26', () => {
  let sandbox
  before(async () => { sandbox = await start('node26') })
  after(async () => { await sandbox.kill() })

  it('takes types out, and says what the rest needs', async () => {
    await check(sandbox, PLAIN)
    const told = await sandbox.runCode(TRANSLATED[0][0], { language: 'ts' })
    assert.match(told.error.value, /enum.*npm install -g typescript/)
  })

  it('has all of it with the package', async () => {
    for (const file of ['package.json', 'lib/typescript.js']) await write(sandbox, `/usr/local/lib/node_modules/typescript/${file}`, `node_modules/typescript/${file}`)
    const context = await sandbox.createCodeContext({ language: 'ts' })
    const told = await sandbox.runCode(TRANSLATED[0][0], { context })
    assert.equal(told.text, '6')
    await check(sandbox, PLAIN.slice(1, 5))
    await check(sandbox, TRANSLATED)
    assert.equal((await sandbox.runCode('const x: = 1', { context })).error.name, 'SyntaxError')
  })
})
