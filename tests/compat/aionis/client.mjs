// SPDX-License-Identifier: Apache-2.0
// A client of the same shape as the vendor's: one fetch a call, no retries, answers taken as they are.
export class AionisHttpError extends Error {
  constructor(status, payload) {
    super(payload?.message ?? `HTTP ${status}`);
    this.status = status;
    this.payload = payload;
  }
}

export function createAionisClient({ baseUrl, headers = {}, fetch = globalThis.fetch }) {
  const base = baseUrl.replace(/\/+$/, "");

  async function ask(method, path, payload) {
    const response = await fetch(base + path, {
      method,
      headers: { "content-type": "application/json", ...headers },
      body: payload === undefined ? undefined : JSON.stringify(payload),
    });
    const text = await response.text();
    let body = null;
    try {
      body = JSON.parse(text);
    } catch {
      // as the vendor's: null
    }
    if (!response.ok) throw new AionisHttpError(response.status, body);
    return body;
  }

  const post = (path) => (payload) => ask("POST", `/v1/memory/sandbox/${path}`, payload);
  return {
    system: { health: () => ask("GET", "/health") },
    memory: {
      sandbox: {
        sessions: { create: post("sessions") },
        execute: post("execute"),
        runs: { get: post("runs/get"), logs: post("runs/logs"), artifact: post("runs/artifact"), cancel: post("runs/cancel") },
      },
    },
  };
}
