// This version imports a file without its ending, which Node.js does not find by
// itself; bundlers do.
import { register } from "node:module";

register(
  "data:text/javascript," +
    encodeURIComponent(`export const resolve = (name, context, next) =>
      next(name === "vscode-jsonrpc/node" ? name + ".js" : name, context);`),
);
