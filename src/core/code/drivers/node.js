// SPDX-License-Identifier: Apache-2.0
// Runs JavaScript for one context, inside the box: a request a connection, answered by lines of JSON. See docs/internals/code.md.
// usage: node -e THIS NAME     (listens on the abstract socket NAME)
// A second thread speaks with the server, so that code which never returns can be ended. The inspector evaluates, since with it
// `await` and a second `const` of one name work as in a notebook.
'use strict';
const threads = require('node:worker_threads');

function main(name, source) {
    const util = require('node:util');
    const busy = new Int32Array(new SharedArrayBuffer(4)); // 1 while code runs that could go on for ever
    const worker = new threads.Worker(source, {eval: true, argv: [name], stdout: false, stderr: false, workerData: busy});
    let value; // of the last expression
    const mimes = [['text/html', 'toHTML'], ['text/markdown', 'toMarkdown'], ['image/svg+xml', 'toSVG']];
    const bundle = (one) => {
        const data = {'text/plain': typeof one === 'string' ? one : util.inspect(one, {depth: 4, maxArrayLength: 1000, maxStringLength: 100000})};
        for (const [mime, method] of mimes) {
            try {
                if (one && typeof one[method] === 'function') data[mime] = String(one[method]());
            } catch { /* it has none, then */ }
        }
        if (one && typeof one === 'object') {
            try {
                const text = JSON.stringify(one);
                if (text !== undefined && text.length < 1 << 20) data['application/json'] = JSON.parse(text);
            } catch { /* not all objects are */ }
        }
        return data;
    };
    for (const stream of ['stdout', 'stderr']) {
        process[stream].write = (chunk, encoding, done) => {
            const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
            worker.postMessage({type: stream, text});
            const after = typeof encoding === 'function' ? encoding : done;
            if (after) process.nextTick(after);
            return true;
        };
    }
    Object.defineProperty(globalThis, '__burrow', {enumerable: false, value: {
        hold(one) { value = one; },
        import(name, options) {
            const isPath = /^\.{0,2}\//.test(name);
            const place = isPath ? require('node:url').pathToFileURL(require('node:path').resolve(name)).href : name;
            return import(place, options);
        },
    }});
    const session = new (require('node:inspector').Session)();
    session.connect();
    const post = (method, params) => new Promise((resolve, reject) =>
        session.post(method, params, (error, answer) => error ? reject(new Error(error.message)) : resolve(answer)));
    let interrupt = null; // ends what is being awaited
    const failure = (details) => {
        const exception = details.exception || {};
        let text = exception.description || (exception.value !== undefined ? String(exception.value) : details.text) || '';
        const ours = text.indexOf('\n    at Session.post ');
        text = (ours < 0 ? text : text.slice(0, ours)).replace(/\n    at .*\bnode:internal\/.*/g, '');
        const name = exception.className || (exception.type === 'object' && text.split(':')[0]) || 'Error';
        const first = text.split('\n')[0];
        return {type: 'error', name, value: first.startsWith(name + ': ') ? first.slice(name.length + 2) : first, traceback: text};
    };
    const run = async (code) => {
        const interrupted = new Promise((resolve, reject) => {
            interrupt = () => reject(Object.assign(new Error('interrupted'), {name: 'Interrupted'}));
        });
        Atomics.store(busy, 0, 1);
        const evaluated = post('Runtime.evaluate', {expression: code, replMode: true, awaitPromise: true, silent: true, objectGroup: 'cell'});
        Atomics.store(busy, 0, 0);
        const answer = await Promise.race([interrupted, evaluated]);
        if (answer.exceptionDetails) {
            worker.postMessage(failure(answer.exceptionDetails));
        } else if (answer.result.type !== 'undefined') {
            const {objectId, unserializableValue} = answer.result;
            const held = objectId ? {objectId} : unserializableValue ? {unserializableValue} : {value: answer.result.value};
            const hold = (await post('Runtime.evaluate', {expression: '__burrow.hold', objectGroup: 'cell'})).result.objectId;
            await post('Runtime.callFunctionOn', {functionDeclaration: 'function(one) { this(one); }', objectId: hold, arguments: [held], silent: true});
            worker.postMessage({type: 'result', main: true, data: bundle(value)});
            value = undefined;
        }
        await post('Runtime.releaseObjectGroup', {objectGroup: 'cell'});
    };
    worker.on('message', async (message) => {
        if (message.interrupt) return interrupt && interrupt();
        const before = {};
        for (const [name, text] of message.env) {
            before[name] = process.env[name];
            process.env[name] = text;
        }
        try {
            await run(message.code);
        } catch (error) {
            worker.postMessage({type: 'error', name: error.name || 'Error', value: error.message, traceback: String(error.stack || error)});
        }
        for (const [name, text] of Object.entries(before))
            if (text === undefined) delete process.env[name];
            else process.env[name] = text;
        worker.postMessage({type: 'done'});
        return undefined;
    });
    globalThis.display = (...values) => values.forEach((one) => worker.postMessage({type: 'result', main: false, data: bundle(one)}));
    globalThis.require = require('node:module').createRequire(process.cwd() + '/');
    globalThis.module = {exports: {}};
    globalThis.exports = globalThis.module.exports;
    globalThis.__filename = process.cwd() + '/cell.js';
    globalThis.__dirname = process.cwd();
    process.on('uncaughtException', (error) => worker.postMessage({type: 'stderr', text: `${(error && error.stack) || error}\n`}));
    process.on('unhandledRejection', (error) => worker.postMessage({type: 'stderr', text: `${(error && error.stack) || error}\n`}));
    process.on('SIGINT', () => {}); // the other thread ends what runs
    worker.on('error', () => process.exit(1));
    worker.on('exit', () => process.exit(1));
    setInterval(() => {}, 1 << 30);
}

function side() {
    const net = require('node:net');
    const inspector = require('node:inspector');
    const session = new inspector.Session();
    session.connectToMainThread();
    let connection = null;
    let count = 0;
    let turn = Promise.resolve();
    let done = () => {};
    const put = (message) => {
        if (connection && !connection.destroyed) connection.write(JSON.stringify(message) + '\n');
    };
    threads.parentPort.on('message', (message) => message.type === 'done' ? done() : put(message));
    process.emitWarning = () => {}; // that taking out types is an experiment is nothing a cell has said
    const ownTypes = (code, mode) => {
        const strip = require('node:module').stripTypeScriptTypes;
        if (typeof strip !== 'function') return undefined;
        try {
            return strip(code, {mode});
        } catch (error) {
            if (error.code === 'ERR_INVALID_ARG_VALUE') return undefined; // Node 26 knows no 'transform'
            if (error.code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX')
                error.message += '; this Node takes types out and translates nothing: npm install -g typescript';
            throw error;
        }
    };
    const packageTypes = (code) => {
        const from = require('node:module').createRequire(process.cwd() + '/');
        for (const place of ['typescript', '/usr/share/nodejs/typescript', '/usr/local/lib/node_modules/typescript', '/usr/lib/node_modules/typescript']) {
            let typescript;
            try {
                typescript = from(place);
            } catch {
                continue;
            }
            const told = typescript.transpileModule(code, {reportDiagnostics: true,
                compilerOptions: {target: 'ES2022', module: 'ESNext', isolatedModules: true, verbatimModuleSyntax: true}});
            const wrong = told.diagnostics.find((one) => one.category === 1 && one.code < 2000);
            if (wrong) throw new SyntaxError(typescript.flattenDiagnosticMessageText(wrong.messageText, '\n'));
            return told.outputText;
        }
        return undefined;
    };
    const withTypes = (code) => {
        const plain = ownTypes(code, 'transform') ?? packageTypes(code) ?? ownTypes(code, 'strip');
        if (plain === undefined) throw new Error('TypeScript needs Node 22.13 or the package typescript in this sandbox: npm install -g typescript');
        return plain;
    };
    // The code with all that is no code (texts, comments, expressions) made '_', at the same places.
    const mask = (code) => {
        const blank = (text) => text.replace(/[^\n]/g, '_');
        const text = /'[^'\\\n]*(?:\\[^][^'\\\n]*)*'?|"[^"\\\n]*(?:\\[^][^"\\\n]*)*"?/y;
        const template = /[^\\`$]*(?:(?:\\[^]|\$(?!\{))[^\\`$]*)*(?:`|\$\{|$)/y;
        const pattern = /\/(?![*/])(?:[^\\/[\n]|\\.|\[[^\]\\\n]*(?:\\.[^\]\\\n]*)*\])+\/[\w$]*/y;
        const comment = /\/\/[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/|$)/y;
        const word = /[\w$\u0080-\uffff]+|\s+/y;
        const open = []; // braces inside of templates
        const out = [];
        let at = 0;
        let before = '';
        const take = (expression) => {
            expression.lastIndex = at;
            const found = expression.exec(code);
            if (found) at = expression.lastIndex;
            return found ? found[0] : '';
        };
        const isBehindValue = () => /^[\w$\u0080-\uffff)\]'"`]/.test(before) && !/^(?:return|typeof|case|in|of|delete|void|throw|new|else|do|await|yield)$/.test(before);
        while (at < code.length) {
            const sign = code[at];
            let found;
            if (sign === '\'' || sign === '"') {
                found = take(text);
                out.push(found.length > 1 ? sign + blank(found.slice(1, -1)) + found.at(-1) : found);
                before = sign;
            } else if (sign === '`' || (sign === '}' && open.at(-1) === 0)) {
                if (sign === '}') open.pop();
                at++;
                found = take(template);
                out.push(sign + blank(found));
                if (found.endsWith('${')) open.push(0);
                before = found.endsWith('${') ? '' : '`';
            } else if ((found = take(comment)) || (sign === '/' && !isBehindValue() && (found = take(pattern)))) {
                out.push(blank(found));
                if (!/^\/[/*]/.test(found)) before = '`';
            } else if ((found = take(word))) {
                out.push(found);
                if (found.trim()) before = found;
            } else {
                at++;
                out.push(sign);
                before = sign;
                if (open.length && sign === '{') open[open.length - 1]++;
                if (open.length && sign === '}') open[open.length - 1]--;
            }
        }
        return out.join('');
    };
    const importOf = (clause, from, attributes) => {
        const call = `await __burrow.import(${from}${attributes ? `, {with: ${attributes}}` : ''})`;
        if (!clause) return call;
        const [, one] = /^([\w$]+)/.exec(clause) || [];
        const [, all] = /\*\s*as\s+([\w$]+)/.exec(clause) || [];
        const [, some] = /\{([^}]*)\}/.exec(clause) || [];
        const names = (some || '').split(',').map((name) => name.trim().replace(/\s+as\s+/, ': ')).filter(Boolean);
        if (one) names.unshift(`default: ${one}`);
        if (!all) return `const {${names.join(', ')}} = ${call}`;
        return `const ${all} = ${call}` + (one ? `, {default: ${one}} = ${all}` : '');
    };
    // A cell is no module: its imports become dynamic ones, which the inspector does not have either, and what it exports is there anyway.
    const withImports = (code) => {
        if (!/\b(?:im|ex)port\b/.test(code)) return code;
        const shape = mask(code);
        const changes = [];
        const change = (expression, make) => {
            for (const found of shape.matchAll(expression)) {
                const part = (i) => found.indices[i] && code.slice(...found.indices[i]);
                const lines = found[0].split('\n').length - 1;
                changes.push([found.index, found.index + found[0].length, make(part) + '\n'.repeat(lines)]);
            }
        };
        change(/(?<=^|;)[ \t]*import(?![\w$])\s*(?:([\w$*{}\s,]+?)\s*from\s*)?(['"]_*['"])(?:\s*with\s*(\{[^}]*\}))?[ \t]*;?/gdm,
            (part) => importOf(part(1), part(2), part(3)) + ';');
        change(/(?<![\w$.])import(?=\s*\()/gd, () => '__burrow.import');
        change(/(?<=^|;)[ \t]*export\s*\{[^}]*\}[ \t]*;?(?!\s*from\b)/gdm, () => '');
        change(/(?<=^|;)[ \t]*export\s+(?:default\s+)?(?=(?:async\s+function|function|class)\b\s*\*?\s*[\w$]|(?:const|let|var)\b)/gdm, () => '');
        change(/(?<=^|;)[ \t]*export\s+default(?![\w$])(?!\s+(?:async\s+function|function|class)\b\s*\*?\s*[\w$])/gdm, () => '__burrow.exported =');
        let at = 0;
        let out = '';
        for (const [from, to, text] of changes.sort((a, b) => a[0] - b[0])) {
            out += code.slice(at, from) + text;
            at = to;
        }
        return out + code.slice(at);
    };
    const run = async (request) => {
        count++;
        put({type: 'started', count});
        try {
            const env = (request.env || '').split('\0').filter((one) => one.includes('='))
                .map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)]);
            const code = withImports(request.typed ? withTypes(request.code) : request.code);
            const over = new Promise((resolve) => { done = resolve; });
            threads.parentPort.postMessage({code, env});
            await over;
        } catch (error) {
            const [said] = String(error.stack || error).split('\n    at '); // where in here is of no use
            put({type: 'error', name: error.name || 'Error', value: error.message, traceback: said});
        }
        put({type: 'end', count});
    };
    const read = (socket) => new Promise((resolve) => {
        let have = Buffer.alloc(0);
        const request = {};
        socket.on('data', (data) => {
            have = Buffer.concat([have, data]);
            for (;;) {
                const line = have.indexOf(10);
                if (line < 0) return have.length > 256 ? resolve(null) : undefined;
                if (line === 0) return resolve(request);
                const [name, size] = have.subarray(0, line).toString().split(' ');
                const length = Number(size);
                if (!/^\d+$/.test(size || '')) return resolve(null);
                if (have.length < line + 1 + length + 1) return undefined;
                request[name] = have.subarray(line + 1, line + 1 + length).toString('utf8');
                have = have.subarray(line + 2 + length);
            }
        });
        socket.on('end', () => resolve(null)); // whoever only looked whether this listens
        socket.on('close', () => resolve(null));
        socket.on('error', () => resolve(null));
    });
    net.createServer({allowHalfOpen: true}, (socket) => {
        turn = turn.then(async () => {
            const request = await read(socket);
            if (!request) return socket.destroy();
            connection = socket;
            let isOver = false;
            let tries = 0;
            const interrupt = () => {
                if (isOver) return;
                const isBusy = Atomics.load(threads.workerData, 0);
                threads.parentPort.postMessage({interrupt: true});
                if (isBusy) session.post('Runtime.terminateExecution', () => {});
                else if (++tries > 20) done(); // what was to tell us has been ended too
                setTimeout(interrupt, 50); // it may not have begun
            };
            socket.on('end', interrupt);
            socket.on('close', interrupt);
            await run(request);
            isOver = true;
            connection = null;
            socket.end();
            return undefined;
        }).catch(() => {});
    }).listen(('\0' + process.argv[process.argv.length - 1]).padEnd(108, '\0')); // some versions fill it up by themselves
}

if (threads.isMainThread) {
    const [, newer] = process.versions.uv.split('.');
    if (Number(newer) < 46) process.exit(127); // it would listen on an empty name, whatever it is told: CODE_LACKS
    const name = process.argv[process.argv.length - 1];
    const source = `'use strict'; const threads = require('node:worker_threads'); (${side.toString()})();`;
    main(name, source);
} else {
    side();
}
