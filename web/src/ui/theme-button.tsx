import { Monitor, Moon, Sun } from "lucide-react";
import { IconButton } from "./button";
import { Menu, MenuItem } from "./menu";
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
    >
      <MenuItem icon={<Sun />} onClick={() => chooseTheme("light")}>
        Light
      </MenuItem>
      <MenuItem icon={<Moon />} onClick={() => chooseTheme("dark")}>
        Dark
      </MenuItem>
      <MenuItem icon={<Monitor />} onClick={() => chooseTheme("system")}>
        As the system
      </MenuItem>
    </Menu>
  );
}
