// SPDX-License-Identifier: Apache-2.0
// Tar archives in memory: what snapshots of a workspace are read from and written as.
import { BurrowError } from './error.js'

const BLOCK = 512

function textAt(bytes, at, length) {
  const end = bytes.indexOf(0, at)
  return bytes.toString('utf8', at, end < 0 || end > at + length ? at + length : end)
}

function numberAt(bytes, at, length) {
  if (bytes[at] & 0x80) return Number(BigInt('0x' + bytes.toString('hex', at + length - 8, at + length))) // too large for octal
  return parseInt(textAt(bytes, at, length).trim() || '0', 8)
}

function paxOf(bytes) {
  const found = {}
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at)
    const length = Number(bytes.toString('latin1', at, space))
    if (space < 0 || !(length > 0)) break
    const [, name, value] = /^([^=]*)=([^]*)\n$/.exec(bytes.toString('utf8', space + 1, at + length)) ?? []
    if (name) found[name] = value
    at += length
  }
  return found
}

/** Regular files, hard links to them, and symbolic links: {type, path, mode, content?, target?} */
export function* tarRead(data) {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  let extra = {}
  for (let at = 0; at + BLOCK <= bytes.length && bytes[at]; ) {
    const type = String.fromCharCode(bytes[at + 156])
    const prefix = textAt(bytes, at + 257, 6) === 'ustar' ? textAt(bytes, at + 345, 155) : ''
    const size = 'size' in extra && !'xgLK'.includes(type) ? Number(extra.size) : numberAt(bytes, at + 124, 12)
    const content = bytes.subarray(at + BLOCK, at + BLOCK + size)
    if (!(size >= 0) || content.length !== size) throw new BurrowError('the archive of the workspace is cut off', { code: 'broken_stream' })
    const name = textAt(bytes, at, 100)
    const entry = {
      path: (extra.path ?? (prefix ? `${prefix}/${name}` : name)).replace(/^(\.\/)+/, ''),
      mode: numberAt(bytes, at + 100, 8) & 0o7777,
      target: extra.linkpath ?? textAt(bytes, at + 157, 100),
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
    if (type === 'x') extra = { ...extra, ...paxOf(content) }
    else if (type === 'L') extra.path = textAt(content, 0, size)
    else if (type === 'K') extra.linkpath = textAt(content, 0, size)
    else {
      if (type === '0' || type === '\0') yield { ...entry, type: 'file', content }
      else if (type === '1') yield { ...entry, type: 'same', target: entry.target.replace(/^(\.\/)+/, '') }
      else if (type === '2') yield { ...entry, type: 'link' }
      if (type !== 'g') extra = {}
    }
  }
}

function header(type, path, size, mode, target = '') {
  const block = Buffer.alloc(BLOCK)
  block.write(path.slice(0, 100), 0, 100)
  block.write(mode.toString(8).padStart(7, '0'), 100)
  block.write('0000000', 108)
  block.write('0000000', 116)
  block.write(size.toString(8).padStart(11, '0'), 124)
  block.write('00000000000', 136)
  block.write('        ', 148)
  block.write(type, 156)
  block.write(target.slice(0, 100), 157, 100)
  block.write('ustar\x0000', 257)
  const sum = block.reduce((all, byte) => all + byte, 0)
  block.write(sum.toString(8).padStart(6, '0') + '\0 ', 148)
  return block
}

function padded(content) {
  return [content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]
}

function paxLine(name, value) {
  const rest = Buffer.byteLength(` ${name}=${value}\n`)
  let length = rest + String(rest).length
  if (String(length).length !== String(rest).length) length = rest + String(length).length
  return `${length} ${name}=${value}\n`
}

/** Of entries as tarRead gives them. */
export function tarWrite(entries) {
  const parts = []
  for (const { type, path, mode, content = Buffer.alloc(0), target } of entries) {
    const pax = Buffer.from(paxLine('path', path) + (type === 'link' ? paxLine('linkpath', target) : ''))
    parts.push(header('x', 'pax', pax.length, 0o644), ...padded(pax))
    parts.push(header(type === 'link' ? '2' : '0', path, content.length, mode ?? 0o644, target), ...padded(content))
  }
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}
