/** The types of `prepare.mjs`, which is plain JavaScript because `launch.mjs` imports it. */

/** Modules of the server, as paths below the root of the project. */
export const ENTRIES: readonly string[];

/**
 * @param bun The path of the runtime. @returns The path of the main module in an up-to-date bundle.
 * @throws If the sources cannot be bundled.
 */
export function preparedServer(bun: string): string;
