/** Style sheets are imported for their effect alone: the bundler gathers them into one file. */
declare module "*.css";
