/** Elements as tagged templates. A value in a template is always text or an attribute, never markup. */
import htm from "htm";
import { type ComponentChildren, type VNode, h } from "preact";

/** An element, or several. */
export type Content = VNode | VNode[];
/** Anything that can stand inside an element. */
export type Children = ComponentChildren;

type Template = (parts: TemplateStringsArray, ...values: readonly unknown[]) => Content;

/** Makes elements from a template. */
export const html = (htm as unknown as { bind: (make: typeof h) => Template }).bind(h);
