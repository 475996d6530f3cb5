// SPDX-License-Identifier: Apache-2.0
export { Burrow } from './src/client.js'
export { BurrowError } from './src/error.js'
export { Sandbox } from './src/sandbox.js'
export { BurrowSandbox, SandboxAgent } from './src/workspace.js'
export { createSandboxTools } from './src/tools.js'
