/**
 * What is done to a data directory that no server has open: verify, repair and restore it.
 */
export { isUnborn } from "./check_directory.ts";
export { runMaintenance } from "./maintenance.ts";
export { runRestore } from "./restore_command.ts";
