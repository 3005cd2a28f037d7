import { createRoot } from "react-dom/client";
import { App } from "./app";
import { signIn } from "./sign-in";
import { applyTheme } from "./ui/theme";

applyTheme();
const root = document.getElementById("root");
if (root) void signIn().then((refused) => createRoot(root).render(<App refused={refused} />));
