/** A style that the bundler takes into the page. */
declare module "*.css";
