/** An instance with a route that lets a client in 5 times a minute; it prints its address. With the argument `bare` it counts alone. */
import express from "express";
import { rateLimit } from "express-rate-limit";
import type { AddressInfo } from "node:net";
import { createLockClient } from "../../../lib/index.js";
import { limitStore } from "../express-rate-limit.js";

const shared = process.argv[2] === "bare" ? {} : { store: limitStore(createLockClient(), "search") };
const app = express();
app.use(rateLimit({ limit: 5, windowMs: 60_000, standardHeaders: "draft-8", ...shared }));
app.get("/", (_req, res) => void res.send("found"));
const server = app.listen(0, "127.0.0.1", () => console.log("at", `http://127.0.0.1:${(server.address() as AddressInfo).port}`));
