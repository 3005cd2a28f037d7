import { createRoot } from "react-dom/client";
import { Chat } from "./Chat";
import { open } from "./server";
import "./style.css";

const root = createRoot(document.getElementById("root")!);

open().then(
  (opened) => root.render(<Chat {...opened} />),
  (error: Error) => root.render(<p className="error" role="alert">{error.message} <a href=".">Begin a new chat</a></p>),
);
