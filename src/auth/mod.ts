/**
 * Who calls, and what they may do.
 */
export type { Principal } from "./principal.ts";
