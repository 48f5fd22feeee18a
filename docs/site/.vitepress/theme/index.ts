import Theme from "vitepress/theme-without-fonts";
import { sayWhileLoading } from "./search-status.ts";
import "./site.css";

export default {
  extends: Theme,
  enhanceApp({ router }: { readonly router: { onAfterRouteChange?: () => void } }) {
    if (typeof document === "undefined") return;
    // The theme's home page has no landmark of its own. The built page has it (config.ts); this is for who comes from another page.
    router.onAfterRouteChange = () => document.querySelector(".VPHome")?.setAttribute("role", "main");
    sayWhileLoading();
  },
};
