// SPDX-License-Identifier: Apache-2.0
// Two validators read a document; what one of them says against it is printed, a line each.
// usage: node validate.mjs FILE
import fs from "node:fs";

import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";

const text = fs.readFileSync(process.argv[2], "utf8");
const faults = [];

const result = await new Validator().validate(JSON.parse(text));
if (!result.valid) faults.push(`openapi-schema-validator: ${JSON.stringify(result.errors).slice(0, 4000)}`);
try {
    await SwaggerParser.validate(JSON.parse(text));
} catch (error) {
    faults.push(`swagger-parser: ${error.message.slice(0, 4000)}`);
}
for (const fault of faults) console.log(fault);
process.exit(faults.length ? 1 : 0);
