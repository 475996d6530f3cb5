// SPDX-License-Identifier: Apache-2.0
// The remote backend of the vendor's SandboxAgent, as its documentation and our reading of it describe it: the class is on no registry.

export class VendorAgent {
  kind = 'sandbox-agent'
  #config
  #env
  #files
  ready = false

  constructor(config) {
    this.#config = config
    this.#env = { ...config.workspace?.env }
    this.#files = config.workspace?.files ?? []
  }

  async start() {
    if (this.ready) return
    if (!this.#config.remote) throw new Error('the backend "remote" requires `remote`')
    await this.#config.remote.start()
    for (const file of this.#files) await this.#config.remote.writeFile(file.path, file.contents, file.encoding ?? 'utf8')
    this.ready = true
  }

  run(code, options) {
    return this.#config.remote.run(code, options)
  }

  shell(command, options) {
    return this.#config.remote.shell(command, options)
  }

  writeFile(path, contents, encoding) {
    return this.#config.remote.writeFile(path, contents, encoding)
  }

  readFile(path, encoding) {
    return this.#config.remote.readFile(path, encoding)
  }

  async snapshot() {
    return { takenAt: Date.now(), files: [], env: this.#env }
  }

  async resume(snapshot) {
    this.#env = { ...snapshot.env }
    this.#files = snapshot.files
    this.ready = false
    await this.start()
  }

  async close() {
    await this.#config.remote.close()
    this.ready = false
  }
}
