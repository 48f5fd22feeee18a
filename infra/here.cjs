/** The directory of this file, for ES modules and CommonJS alike: `import.meta.url` is a syntax error in the latter. */
module.exports = __dirname;
