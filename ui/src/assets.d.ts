/** Style sheets are imported for their side effect: the bundler collects them into one file. */
declare module "*.css";
