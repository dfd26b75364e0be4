/**
 * Exports the commands for a data directory that no server has open: verify, repair and restore.
 */
export { runMaintenance } from "./maintenance.ts";
export { runRestore } from "./restore_command.ts";
