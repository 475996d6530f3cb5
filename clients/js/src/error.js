// SPDX-License-Identifier: Apache-2.0

/** What the server refused, or what could not be asked of it. Decide by `code` and `status`; `message` is for people. */
export class BurrowError extends Error {
  constructor(message, { code = 'failed', status = 0, field, remedy, requestId, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BurrowError'
    this.code = code
    this.status = status
    this.field = field
    this.remedy = remedy
    this.requestId = requestId
  }
}

/** The error of an answer that is not 2xx. */
export async function errorOf(response) {
  const text = await response.text().catch(() => '')
  let told = {}
  try {
    told = JSON.parse(text) ?? {}
  } catch {
    // not the server itself: a proxy in between
  }
  return new BurrowError(told.detail ?? told.title ?? `the server answered ${response.status}`, {
    code: told.code ?? 'failed',
    status: response.status,
    field: told.field,
    remedy: told.remedy,
    requestId: told.requestId ?? response.headers.get('x-request-id') ?? undefined,
  })
}

export function invalid(message, field) {
  return new BurrowError(message, { code: 'invalid', field })
}
