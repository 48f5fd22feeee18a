module holdfast

go 1.22
