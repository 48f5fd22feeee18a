/**
 * Randomness. Only this file draws any. The kernel is asked at the time of use: two processes that are restored from one image of memory (a
 * snapshot of Node, CRIU, a microVM) would draw the same from all that the image has, such as bytes drawn ahead, those that `randomUUID()`
 * keeps, the state of `Math.random()`, or the state of OpenSSL's generator (docs/decisions/053-no-id-comes-from-an-image.md).
 */
import { nodeModules } from "./node-modules.js";

/** The kernel's generator. Linux seeds it anew when a virtual machine is restored. */
const KERNEL = "/dev/urandom";

/** Returns `count` bytes that nobody can guess: a leaseId proves a hold. */
export function randomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  return filledByKernel(bytes) ? bytes : crypto.getRandomValues(bytes);
}

/** Returns a random number from 0 to 1. */
export function randomNumber(): number {
  const [a = 0, b = 0, c = 0, d = 0] = randomBytes(4);
  return (a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d) / 2 ** 32;
}

/** Returns the 32 hexadecimal digits of 16 random bytes. */
export function randomToken(): string {
  return Array.from(randomBytes(16), (byte) => (byte + 0x100).toString(16).slice(1)).join("");
}

/**
 * Fills `bytes` from the kernel's file; false if there is none, or it may not be read. The file is opened for each draw: the number of an
 * open one would be in the image too, and could be another file's by then.
 */
function filledByKernel(bytes: Uint8Array): boolean {
  const fs = nodeModules()?.("node:fs");
  if (!fs) return false;
  try {
    const file = fs.openSync(KERNEL, "r");
    try {
      return fs.readSync(file, bytes) === bytes.length;
    } finally {
      fs.closeSync(file);
    }
  } catch {
    return false;
  }
}
