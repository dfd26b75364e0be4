/**
 * What is done to a data directory that no server has open: verify, repair and restore it.
 */
export { runMaintenance } from "./maintenance.ts";
export { runRestore } from "./restore_command.ts";
