/**
 * Locates the modules that threads run, in the bundle that servers run. A thread that ran the
 * sources would compile a thousand modules, which takes a second of processor time.
 */
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { preparedServer } from "../../scripts/prepare.mjs";

/**
 * Returns the URL of a thread's module in the bundle.
 *
 * @param name The name of the module without its extension, as in `reader_thread`.
 */
export function threadEntry(name: string): URL {
  const program = preparedServer(process.execPath);
  return pathToFileURL(join(dirname(program), `${name}${extname(program)}`));
}
