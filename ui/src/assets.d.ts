/** Style sheets are imported for their side effect: the bundler gathers them into one file. */
declare module "*.css";
