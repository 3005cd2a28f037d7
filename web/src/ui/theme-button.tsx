import { Monitor, Moon, Sun } from "lucide-react";
import { IconButton } from "./button";
import { Menu } from "./menu";
import { chooseTheme, useTheme } from "./theme";

export function ThemeButton() {
  const theme = useTheme();
  const Icon = theme === "dark" ? Moon : theme === "light" ? Sun : Monitor;
  return (
    <Menu
      trigger={
        <IconButton label="Light or dark">
          <Icon className="size-4" />
        </IconButton>
      }
      items={[
        { label: "Light", icon: <Sun />, onClick: () => chooseTheme("light") },
        { label: "Dark", icon: <Moon />, onClick: () => chooseTheme("dark") },
        { label: "As the system", icon: <Monitor />, onClick: () => chooseTheme("system") },
      ]}
    />
  );
}
