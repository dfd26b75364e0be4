/**
 * Style sheets are imported for their side effect: the bundler collects them into a single file.
 */
declare module "*.css";
