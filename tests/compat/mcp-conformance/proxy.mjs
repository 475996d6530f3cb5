// SPDX-License-Identifier: Apache-2.0
// Lets a client that cannot send a key through to the server, adding the key and changing nothing else. usage: node proxy.mjs PORT KEY; prints its port.
import http from "node:http";

const [port, key] = process.argv.slice(2);
const proxy = http.createServer((asked, answered) => {
  const headers = { ...asked.headers, authorization: `Bearer ${key}` };
  const there = http.request({ host: "127.0.0.1", port, path: asked.url, method: asked.method, headers }, (answer) => {
    answered.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(answered);
  });
  there.on("error", () => answered.destroy());
  answered.on("close", () => there.destroy());
  asked.pipe(there);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
