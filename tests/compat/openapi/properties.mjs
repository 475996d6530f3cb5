// SPDX-License-Identifier: Apache-2.0
// Sends requests that are made from the document by chance, good and bad ones, for so many seconds. No answer may be a fault of the
// server, and every refusal must be worded as the document says. What fails is made small by fast-check and printed.
// usage: node properties.mjs DOCUMENT URL KEY SECONDS IDS
//   IDS is JSON: what to put for parameters of paths, {"sandbox": ["sbx_…"]}
import fs from "node:fs";

import fc from "fast-check";

const [file, url, key, seconds, ids] = process.argv.slice(2);
const document = JSON.parse(fs.readFileSync(file, "utf8"));
const known = JSON.parse(ids);
const end = Date.now() + Number(seconds) * 1000;
const statuses = new Map();
let sent = 0;

// ---- values ----

// Commands that end by themselves, wherever a text may be one.
const words = ["true", "echo", "x", "", "/", "..", "/workspace/a", "a".repeat(300), "\u0000", "ü", "-1", "\ud800", "$(id)", "a=b", "base:latest"];
const text = fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 20 }));
const anything = fc.oneof(text, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null), fc.constant([]), fc.constant({}));

function number(schema) {
    const edges = [schema.minimum, schema.maximum, 0, -1, 1, 2 ** 31, 2 ** 53, -(2 ** 53)].filter((edge) => edge !== undefined);
    return fc.oneof(fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1000, 1000) < (schema.minimum ?? 0) ? schema.minimum ?? 0 : Math.min(schema.maximum ?? 1000, 1000) }),
        fc.constantFrom(...edges));
}

function object(schema, depth) {
    const required = new Set(schema.required ?? []);
    const members = Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, value(inner, depth + 1)]));
    const shaped = fc.record(members, { requiredKeys: Object.keys(members).filter((name) => required.has(name)) });
    if (!schema.additionalProperties || schema.additionalProperties === true) return shaped;
    return fc.dictionary(fc.oneof(fc.constantFrom("A", "team", "x".repeat(80)), text), value(schema.additionalProperties, depth + 1), { maxKeys: 3 });
}

function value(schema, depth = 0) {
    const types = [schema.type ?? []].flat();
    const choices = [];
    if (schema.enum) choices.push(fc.constantFrom(...schema.enum));
    else if (types.includes("string")) choices.push(text, ...(schema.examples ?? []).map((example) => fc.constant(example)));
    if (types.includes("integer") || types.includes("number")) choices.push(number(schema));
    if (types.includes("boolean")) choices.push(fc.boolean());
    if (types.includes("array")) choices.push(fc.array(value(schema.items ?? {}, depth + 1), { maxLength: 3 }));
    if (types.includes("object")) choices.push(depth < 5 ? object(schema, depth) : fc.constant({}));
    if (types.includes("null")) choices.push(fc.constant(null));
    if (!choices.length) choices.push(anything);
    return fc.oneof({ weight: 12, arbitrary: fc.oneof(...choices) }, { weight: 1, arbitrary: anything });
}

// ---- requests ----

function part(name) {
    const real = known[name] ?? [];
    return real.length ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...real) }, { weight: 1, arbitrary: text }) : text;
}

function request(path, method, operation) {
    const parameters = (operation.parameters ?? []).filter((parameter) => !parameter.$ref);
    const inPath = parameters.filter((parameter) => parameter.in === "path");
    const inQuery = parameters.filter((parameter) => parameter.in === "query");
    const content = operation.requestBody?.content ?? {};
    const schema = content["application/json"]?.schema;
    const example = content["application/json"]?.example;
    const body = schema ? fc.oneof({ weight: 5, arbitrary: object(schema, 0) }, { weight: 2, arbitrary: fc.constant(example ?? {}) }, { weight: 1, arbitrary: anything })
        : Object.keys(content).length ? fc.string({ maxLength: 200 }) : fc.constant(undefined);
    return fc.record({
        path: fc.tuple(...inPath.map((parameter) => part(parameter.name))),
        query: fc.record(Object.fromEntries(inQuery.map((parameter) => [parameter.name, value(parameter.schema)])), { requiredKeys: [] }),
        body,
        once: fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom("a", "b", "k".repeat(300)) }),
    }).map((chosen) => {
        let index = 0;
        const place = path.replace(/\{\w+\}/g, () => encodeURIComponent(Buffer.from(String(chosen.path[index++])).toString()));
        const query = new URLSearchParams(Object.entries(chosen.query).map(([name, item]) => [name, typeof item === "object" ? JSON.stringify(item) : String(item)]));
        return {
            method: method.toUpperCase(),
            target: place + (query.size ? `?${query}` : ""),
            body: chosen.body === undefined ? undefined : schema ? JSON.stringify(chosen.body) : chosen.body,
            once: chosen.once,
        };
    });
}

async function ask({ method, target, body, once }) {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    if (once !== null) headers["Idempotency-Key"] = once;
    const patience = AbortSignal.timeout(3000);
    let answer;
    try {
        answer = await fetch(url + target, { method, headers, body: method === "GET" ? undefined : body, signal: patience });
        const answered = Buffer.from(await answer.arrayBuffer()).toString();
        return { status: answer.status, type: answer.headers.get("content-type") ?? "", text: answered };
    } catch (error) {
        if (patience.aborted) return { status: answer?.status ?? 0, type: "", text: "" }; // it waits for something: as asked for
        throw error;
    }
}

// What a server may say when it has too much to do, or when what was asked for cannot be on this machine.
const FINE = new Set([501, 503, 504, 507]);

function check(answer) {
    if (answer.status >= 500 && !FINE.has(answer.status)) throw new Error(`status ${answer.status}: ${answer.text.slice(0, 500)}`);
    if (answer.status >= 400 && answer.type) {
        if (answer.type !== "application/problem+json") throw new Error(`a refusal of type ${answer.type}`);
        const problem = JSON.parse(answer.text);
        const codes = document.components.schemas["api-failure"].properties.code.enum;
        if (problem.status !== answer.status || !codes.includes(problem.code) || !problem.detail || !problem.requestId) throw new Error(`a refusal that is not as described: ${answer.text}`);
    }
}

const operations = Object.entries(document.paths).flatMap(([path, item]) => Object.entries(item).map(([method, operation]) => [path, method, operation]));
// What ends things comes last, and keys after all else.
const rank = ([path, method]) => (method === "delete" ? 2 : 0) + (/\/(keys|tokens|organisations)/.test(path) ? 3 : 0);
operations.sort((a, b) => rank(a) - rank(b));
const round = Math.max(1, Math.floor((Number(seconds) * 1000) / operations.length));
let failed = 0;

for (const [path, method, operation] of operations) {
    const left = Math.min(round, end - Date.now());
    if (left <= 0) break;
    const property = fc.asyncProperty(request(path, method, operation), async (chosen) => {
        const answer = await ask(chosen);
        sent++;
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        check(answer);
    });
    const result = await fc.check(property, { numRuns: 1000, interruptAfterTimeLimit: left, markInterruptAsFailure: false });
    if (result.failed && result.counterexample) {
        failed++;
        console.log(`${method.toUpperCase()} ${path}: ${result.errorInstance ?? result.error}\n  ${JSON.stringify(result.counterexample).slice(0, 1500)}\n  seed ${result.seed}, path ${result.counterexamplePath}`);
    }
}
console.log(`${sent} requests, statuses ${JSON.stringify(Object.fromEntries([...statuses].sort()))}`);
process.exit(failed ? 1 : 0);
