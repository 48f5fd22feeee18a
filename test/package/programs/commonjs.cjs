const modules = { holdfast: require("holdfast"), testing: require("holdfast/testing"), middy: require("holdfast/middy") };

import("./check.mjs").then(({ check }) => check(modules, modules)).then(() => console.log("one copy"));
